"""The scale of gradients in float16, and the steps that overflow leaves out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

INITIAL = 2.0**13
"""Less than GradScaler's 2**16, which overflows in the first steps of most programs; growth makes up for it."""
GROWTH_STEPS, MOST = 500, 2.0**24
BACKOFF = 0.5


class LossScale:
    """The scale, and what happens at the steps of optimizers.

    A step with gradients that are not finite is left out as `torch.amp.GradScaler` leaves it out: its parameters have
    no gradient while the optimizer steps, so that neither they nor its state move. What reads gradients after the step
    finds them as they were.
    """

    def __init__(self) -> None:
        self.value = INITIAL
        self.num_steps = 0
        self.num_skipped = 0
        self._watched: Any = None
        """Parameters, as weak keys: the `id` of one that is gone may become another's."""
        self._good = 0
        self._withheld: list[tuple[Any, Any]] = []

    def watch(self, parameters: Iterable[Any]) -> None:
        """Unscale what arrives at those that learn, before anything of the program's sees it."""
        if self._watched is None:
            from torch.utils.weak import WeakTensorKeyDictionary

            self._watched = WeakTensorKeyDictionary()
        for parameter in parameters:
            if parameter.requires_grad and parameter not in self._watched:
                self._watched[parameter] = True
                parameter.register_hook(self.unscaled)

    def scaled(self, gradient: Any) -> Any:
        """Return a gradient that enters the model."""
        return gradient * self.value

    def unscaled(self, gradient: Any) -> Any:
        """Return a gradient that leaves the model."""
        return gradient / self.value

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Take the gradients away where one is not finite, and adapt the scale.

        All of the optimizer's count: an overflow also arrives at what stands before a model, such as a learned prompt.
        """
        held = [
            parameter
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if not held or not self._watched:
            return
        self.num_steps += 1
        if _all_finite([parameter.grad for parameter in held]):
            self._good += 1
            if self._good % GROWTH_STEPS == 0:
                self.value = min(MOST, self.value / BACKOFF)
            return
        self.num_skipped += 1
        self._good = 0
        self.value = max(1.0, self.value * BACKOFF)
        self._withheld = [(parameter, parameter.grad) for parameter in held]
        for parameter in held:
            parameter.grad = None

    def after_step(self, *_: Any) -> None:
        """Give the gradients back."""
        for parameter, gradient in self._withheld:
            parameter.grad = gradient
        self._withheld = []


def _all_finite(gradients: list[Any]) -> bool:
    """Whether all values are finite, with one look at each device."""
    import torch

    norms = [torch.linalg.vector_norm(_values(gradient), float("inf")) for gradient in gradients]
    by_device: dict[Any, list[Any]] = {}
    for norm in norms:
        by_device.setdefault(norm.device, []).append(norm)
    return all(bool(torch.stack(found).isfinite().all()) for found in by_device.values())


def _values(gradient: Any) -> Any:
    return gradient.coalesce().values() if gradient.is_sparse else gradient
