"""The activation of cuda_graphs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hotloop.optimize.catalogue.compute.cuda_graphs.capture import capture_place, run_without_waits
from hotloop.optimize.evidence import evidence
from hotloop.optimize.program.containers import map_tensors, tensors_in
from hotloop.probe.activation.activation import Activation

WARM_UP = 3
"""Forwards and backwards before the capture: torch's own default."""


class GraphedForward(Activation):
    """Captures the call of each root at its first training forward, and replays it."""

    def __init__(self) -> None:
        self._num_replays = 0
        self._num_plain = 0
        self._left: list[str] = []

    def wrap_forward(self, module: Any, call: Any) -> Any:
        """Return what replays where it can, and calls the program's own code where it cannot."""
        graph = _Graph(module)

        @functools.wraps(call)
        def run(*args: Any, **kwargs: Any) -> Any:
            if graph.replay is None and not graph.why_not:
                self._left += graph.capture(args, kwargs)
            if not graph.takes(args, kwargs):
                self._num_plain += 1
                return call(*args, **kwargs)
            self._num_replays += 1
            return graph.run(args)

        return run

    def effect(self) -> tuple[bool, str]:
        """Return whether graphs were replayed."""
        if not self._num_replays:
            return False, evidence("", self._left, "no training forward was captured")
        plain = f", {self._num_plain} calls as they were" if self._num_plain else ""
        return True, evidence(f"{self._num_replays} forwards replayed as CUDA graphs{plain}", self._left)


class _Graph:
    """The graph of one root.

    Args:
        module: the root.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self.replay: Any = None
        self.why_not = ""
        self._kinds: list[Any] = []
        self._training = module.training
        self._grad = True
        self._pending = False
        """A forward was replayed whose backward has not come: its activations are in the graph's memory."""

    def capture(self, args: Any, kwargs: Any) -> list[str]:
        """Capture a forward and its backward, and leave the model as it was; return why not."""
        self.why_not = _reason_against(self._module, args, kwargs)
        if not self.why_not:
            self._try(args)
        return [f"{type(self._module).__name__}: {self.why_not}"] if self.why_not else []

    def _try(self, args: Any) -> None:
        import torch

        self._kinds, self._training = _kinds(args), self._module.training
        self._grad = torch.is_grad_enabled()
        samples = map_tensors(args, lambda one: one.detach().clone().requires_grad_(one.requires_grad))
        device, inside = args[0].device, self._module.__dict__
        own = {name: inside[name] for name in ("forward",) if name in inside}
        try:
            # Stream and generator are given back before what stands on them.
            with _unchanged(self._module, device), capture_place(device):
                run_without_waits(self._module, samples, device)
                torch.cuda.make_graphed_callables(
                    self._module, samples, num_warmup_iters=WARM_UP, allow_unused_input=True
                )
                # It has put itself into the instance, where it could not be pickled.
                self.replay = inside["forward"]
        except Exception as error:  # whatever the program's forward does that cannot be captured
            self.why_not = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
        finally:
            inside.pop("forward", None)
            inside.update(own)

    def takes(self, args: Any, kwargs: Any) -> bool:
        """Whether a call matches the captured one and the graph's memory is free."""
        import torch

        return (
            self.replay is not None
            and not kwargs
            and not self._pending
            and self._module.training == self._training
            and torch.is_grad_enabled() == self._grad
            and _kinds(args) == self._kinds
        )

    def run(self, args: Any) -> Any:
        """Replay; the output is copied, as the next replay writes over it."""
        output = map_tensors(self.replay(*args), lambda tensor: tensor.clone())
        learning = [each for each in tensors_in(output) if each.requires_grad]
        for each in learning:
            each.register_hook(self._backward_came)
        self._pending = bool(learning)
        return output

    def _backward_came(self, gradient: Any) -> None:
        """Take the gradients out of the graph's memory: the replay that follows would write the new ones over them."""
        self._pending = False
        for parameter in self._module.parameters():
            if parameter.grad is not None:
                parameter.grad = parameter.grad.clone()


def _reason_against(module: Any, args: Any, kwargs: Any) -> str:
    import torch

    if kwargs or not args or not all(isinstance(each, torch.Tensor) for each in args):
        return "it is called with something else than tensors, or by name"
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if any(getattr(part, name, None) for part in module.modules() for name in hooks):
        return "it has hooks, which a replay does not call"
    if len({each.device for each in (*module.parameters(), *module.buffers(), *args)}) > 1:
        return "it lies on several devices"
    if any(buffer.requires_grad for buffer in module.buffers()):
        return "a buffer of it is trained"
    return ""


def _kinds(args: Any) -> list[Any]:
    return [
        (each.shape, each.dtype, each.device, each.requires_grad, each.stride()) for each in tensors_in(args)
    ]


@contextmanager
def _unchanged(module: Any, device: Any) -> Iterator[None]:
    """Give buffers, gradients' state and random numbers back as they were: the warm-up runs the model for nothing."""
    import torch

    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    random = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    caches = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(caches)
        if random is not None:
            torch.cuda.set_rng_state(random, device)
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
