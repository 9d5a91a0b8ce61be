"""Looks at what the first steps of a training do: see `hotloop.model.learned.TrainingInvariants`.

A loss curve moves little within the steps of a trial when weights lose their precision, small gradients vanish or
dropout is off. All three are visible at once in what the steps are made of.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from itertools import compress
from typing import Any

from hotloop.probe.record.gradient_sketches import GradientSketches
from hotloop.probe.record.outputs import some_values, tensors_in

MAX_FORWARDS = 32
"""A trial's warm-up, or little more; all of it is off the clock."""
MAX_STEPS = 16
"""Calls of an optimizer; a GAN has two of them."""
MAX_WEIGHTS = 1024
"""Of a parameter, whose changes are looked at."""
MAX_TENSORS = 4
"""Of a batch."""
ENOUGH = 8
"""Forwards of a root after which its buffers are looked at, and its weights where no optimizer has moved them twice."""


class Invariants:
    """What the training steps of this process had in common."""

    def __init__(self) -> None:
        self._batches: list[Any] = []
        self._integers: list[Any] = []
        self._num_forwards = self._num_random = self._num_steps = 0
        self._buffers: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self._calls: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._moving: list[Any] = []
        self._coarse: list[Any] = []
        self._zeros: list[Any] = []
        self._weights: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        """Of each optimizer: its weights before its last step, and how that step changed them."""
        self._moved: list[tuple[list[int], Any]] = []
        """Of each optimizer: how many values of each parameter are looked at, and how far each moved in all. It is kept
        when the optimizer is gone: a program's own function may have made it."""
        self._moved_at: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._looked: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers whose weights were looked at."""
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers that have taken a step since the last backward began."""
        self._carried: list[Any] = []
        self._sizes: list[Any] = []
        self._turns: list[Any] = []
        self._num_weights = self._num_gradients = self._num_backwards = 0
        self._sketches = GradientSketches()
        self.stopped = False
        """Something could not be looked at: nothing is said of this process."""

    @property
    def enough_forwards(self) -> bool:
        """Whether no more forwards need to be looked at."""
        return self.stopped or self._num_forwards >= MAX_FORWARDS

    @property
    def enough_steps(self) -> bool:
        """Whether no more calls of an optimizer need to be looked at."""
        return self.stopped or self._num_steps >= MAX_STEPS

    @property
    def enough_backwards(self) -> bool:
        """Whether no more backwards need to be looked at: optimizers take the steps, or it has been enough of them."""
        return self.stopped or self._num_steps > 0 or self._num_backwards >= MAX_STEPS

    @property
    def went_back(self) -> bool:
        """Whether a backward has ended."""
        return self._num_backwards > 0

    def before(self, module: Any, args: Any, kwargs: Any) -> list[Any]:
        """Look at a root and at what it is given; return the state of the random generators."""
        import torch

        self._num_forwards += 1
        tensors = list(tensors_in((args, kwargs)))[:MAX_TENSORS]
        if tensors:
            each = [_fingerprint(tensor).to(tensors[0].device) for tensor in tensors]
            whole = [not tensor.dtype.is_floating_point for tensor in tensors]
            self._batches.append(torch.stack(each).sum())
            self._integers.append(sum(compress(each, whole)))
        self._calls[module] = calls = self._calls.get(module, 0) + 1
        if calls == 1:
            self._buffers[module] = [_fingerprint(buffer) for buffer in _floating(module.buffers())]
        elif calls == ENOUGH:
            self._look_at_buffers(module)
            if not self._looked:  # weights that an optimizer moves are looked at after two steps of it
                self._look_at_weights(_floating(module.parameters()))
        return _generators(next(module.parameters(), None))

    def after(self, module: Any, generators: list[Any]) -> None:
        """Take note whether the forward drew random numbers."""
        import torch

        now = _generators(next(module.parameters(), None))
        self._num_random += not all(map(torch.equal, generators, now))

    def _look_at_buffers(self, module: Any) -> None:
        now = [_fingerprint(buffer) for buffer in _floating(module.buffers())]
        self._moving += [new != old for new, old in zip(now, self._buffers[module], strict=True)]

    def _look_at_weights(self, parameters: Iterable[Any]) -> None:
        for parameter in parameters:
            if parameter.requires_grad:
                values = some_values(parameter)
                self._num_weights += len(values)
                self._coarse.append(_coarse(values))

    def step(self, optimizer: Any) -> None:
        """Look at the gradients that an optimizer is about to use, and at what its step before has done."""
        self._num_steps += 1
        if self._num_steps == 1:
            self._sketches = GradientSketches()  # gradients that were accumulated for it are no steps
        self._stepped.add(optimizer)
        self._look_at_update(optimizer)
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self._sketches.keep(
            parameters, self._num_forwards, _generators(parameters[0] if parameters else None)
        )
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None and parameter.requires_grad:
                    self._num_gradients += parameter.numel()
                    self._zeros.append(parameter.numel())
                elif gradient is not None and not gradient.is_sparse:
                    values = some_values(gradient)
                    # As many as the parameter has: a large one counts for more.
                    weight = parameter.numel() / max(1, len(values))
                    self._num_gradients += parameter.numel()
                    self._zeros.append((values == 0).sum() * weight)

    def after_backward(self) -> None:
        """Look at the gradients of a program that takes its steps without an optimizer: `p.data.add_(p.grad, ...)`."""
        self._num_backwards += 1
        parameters = [each for root in self._calls for each in root.parameters() if each.requires_grad]
        if parameters:
            self._sketches.keep(parameters, self._num_forwards, _generators(parameters[0]))

    def backward(self) -> None:
        """Look, as a backward begins, whether gradients that a step has used are still there, to be added to."""
        stepped = list(self._stepped)
        self._stepped.clear()
        for optimizer in stepped:
            parameters = (each for group in optimizer.param_groups for each in group["params"])
            gradients = [
                each.grad for each in parameters if each.grad is not None and not each.grad.is_sparse
            ]
            first = gradients[:MAX_TENSORS]
            self._carried.append(
                sum(some_values(each, MAX_WEIGHTS).any().to(first[0].device) for each in first)
            )

    def _look_at_update(self, optimizer: Any) -> None:
        import torch

        parameters = _floating(parameter for group in optimizer.param_groups for parameter in group["params"])
        if not parameters:
            return
        home = parameters[0].device
        values = [some_values(each, MAX_WEIGHTS).to(home) for each in parameters]
        weights = torch.cat(values)
        before, update = self._weights.get(optimizer, (None, None))
        if before is None or len(before) != len(weights):
            self._weights[optimizer] = [weights, None]
            return
        now = weights - before
        if update is not None and optimizer not in self._looked:  # the first step's rate may have been 0
            if not self._looked:
                self._coarse, self._num_weights = [], 0
            self._looked.add(optimizer)
            self._look_at_weights(parameters)
        at = self._moved_at.setdefault(optimizer, len(self._moved))
        known = self._moved[at][1] if at < len(self._moved) else None
        moved = now.abs() if known is None or len(known) != len(now) else known + now.abs()
        seen = ([len(each) for each in values], moved)
        if at < len(self._moved):
            self._moved[at] = seen
        else:
            self._moved.append(seen)
        self._sizes.append(now.norm() / before.norm())
        if update is not None:
            self._turns.append((now * update).sum() / (now.norm() * update.norm()))
        self._weights[optimizer] = [weights, now]

    def stop(self) -> None:
        """Say nothing of this process."""
        self.stopped = True

    def seen(self) -> dict[str, Any] | None:
        """Return what was seen so far (see `TrainingInvariants`); None: nothing."""
        if self.stopped or not self._num_forwards:
            return None
        return {
            "num_forwards": self._num_forwards,
            "batches": _numbers(self._batches),
            "integers": _numbers(self._integers),
            "num_random": self._num_random,
            "num_buffers": len(self._moving),
            "num_moving": int(sum(_numbers(self._moving))),
            "coarse_weights": sum(_numbers(self._coarse)) / self._num_weights if self._num_weights else None,
            "num_parameters": sum(len(sizes) for sizes, _ in self._moved),
            "num_still": int(sum(_numbers([_still(*each) for each in self._moved]))),
            "num_begun": len(self._carried),
            "num_carried": sum(carried > 0 for carried in _numbers(self._carried)),
            "update_size": _mean(self._sizes),
            "update_turn": _mean(self._turns),
            "zero_gradients": sum(_numbers(self._zeros)) / self._num_gradients
            if self._num_gradients
            else None,
            "gradients": self._sketches.rows(),
        }


def _still(sizes: list[int], moved: Any) -> Any:
    """Return how many parameters have no value that moved."""
    import torch

    ends = torch.tensor(sizes, device=moved.device).cumsum(0) - 1
    so_far = (moved > 0).cumsum(0)[ends]
    return (so_far.diff(prepend=so_far.new_zeros(1)) == 0).sum()


def _numbers(values: list[Any]) -> list[float]:
    """Return numbers that may be on devices, each device's in one copy."""
    import torch

    return torch.stack([torch.as_tensor(value).double().cpu() for value in values]).tolist() if values else []


def _mean(values: list[Any]) -> float | None:
    """Return the mean of those that are numbers: a step may have changed nothing."""
    finite = [value for value in _numbers(values) if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None


def _floating(tensors: Iterable[Any]) -> list[Any]:
    return [tensor for tensor in tensors if tensor.is_floating_point() and tensor.numel()]


def _fingerprint(tensor: Any) -> Any:
    """Return a number that differs where values do, whatever the layout in memory."""
    import torch

    values = some_values(tensor)
    places = torch.arange(1, len(values) + 1, device=values.device, dtype=values.dtype)
    return (values * places.sqrt()).sum() / len(values)


def _coarse(values: Any) -> Any:
    """Return how many numbers half precision holds exactly."""
    import torch

    brain, half = ((values.to(dtype).to(values) == values).sum() for dtype in (torch.bfloat16, torch.float16))
    return brain.maximum(half)


def _generators(parameter: Any) -> list[Any]:
    """Return the state of the generators that operators draw from where a parameter is; None: on the host alone."""
    import torch

    states = [torch.get_rng_state()]
    if parameter is not None and parameter.device.type == "cuda":
        states.append(torch.cuda.get_rng_state(parameter.device))
    return states
