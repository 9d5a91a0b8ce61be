"""fused_optimizer as a knob: the implementation of a living optimizer changed to and fro."""

from __future__ import annotations

import weakref
from typing import Any

from hotloop.optimize.catalogue.compute.fused_optimizer.activation import reason_against
from hotloop.probe.activation.knob import Knob

_WAYS = ("fused", "foreach")


class OptimizerKnob(Knob):
    """Changes the implementation of torch's optimizers between two steps.

    Args:
        implementation: `fused` (else foreach) or `foreach`.
    """

    def __init__(self, implementation: str) -> None:
        self._implementation = implementation
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()
        self._before: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._changed: set[str] = set()

    def on_torch(self) -> None:
        """See which optimizers step."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(lambda optimizer, *_: self._seen.add(optimizer))

    def switch(self, on: bool) -> None:
        """Set the implementation, or the program's own again."""
        if on:
            for optimizer in list(self._seen):
                self._set(optimizer)
            return
        for group, own in self._before:
            group.update(own)
        self._before.clear()
        for optimizer in list(self._seen):
            _place_step_counts(optimizer)

    def _set(self, optimizer: Any) -> None:
        way = self._way(optimizer)
        if way is None or reason_against(type(optimizer), optimizer.defaults):
            return
        for group in optimizer.param_groups:
            self._before.append((group, {name: group[name] for name in _WAYS if name in group}))
            group.update({name: name == way for name in _WAYS if name in group})
        _place_step_counts(optimizer)
        self._changed.add(f"{type(optimizer).__name__} stepped {way}")

    def _way(self, optimizer: Any) -> str | None:
        ways = _WAYS if self._implementation == "fused" else ("foreach",)
        return next((way for way in ways if way in optimizer.defaults), None)

    def effect(self) -> tuple[bool, str]:
        """Return whether an optimizer was changed."""
        return bool(self._changed), "; ".join(sorted(self._changed)) or "no optimizer could be changed"


def _place_step_counts(optimizer: Any) -> None:
    """Fused and capturable kernels want their count of steps beside the parameter, the others on the host."""
    import torch

    for group in optimizer.param_groups:
        beside = group.get("fused") or group.get("capturable")
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            count = state.get("step") if isinstance(state, dict) else None
            if isinstance(count, torch.Tensor) and parameter.device.type != "cpu":
                state["step"] = count.to(parameter.device if beside else "cpu")
