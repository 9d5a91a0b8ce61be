"""The activation of gradient_accumulation: the roots are called with parts of their batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.optimize.catalogue.memory.gradient_accumulation.parted_call import PartedCall
from hotloop.probe.activation.activation import Activation


class MicroBatches(Activation):
    """Calls each root with parts of its batch, where that gives the same.

    Args:
        num_parts: of each batch.
    """

    wraps_at_once = True

    def __init__(self, num_parts: int) -> None:
        self._num_parts = num_parts
        self._roots: dict[int, PartedCall] = {}

    def wrap_forward(self, module: Any, call: Callable[..., Any]) -> Any:
        """Return the call in parts."""
        if id(module) not in self._roots:
            self._roots[id(module)] = PartedCall(module, self._num_parts)
        return self._roots[id(module)].wrapped(call)

    def effect(self) -> tuple[bool, str]:
        """Return whether parts of batches were computed, and again in the backward."""
        acting = [root for root in self._roots.values() if root.num_recomputed and not root.reason]
        said = []
        if acting:
            batches, parts, again = (
                sum(getattr(root, name) for root in acting)
                for name in ("num_batches", "num_calls", "num_recomputed")
            )
            said.append(f"{batches} batches in {parts} parts, {again} recomputed in the backward")
        said += [f"left alone: {root.left_alone}" for root in self._roots.values() if root.left_alone]
        return bool(acting), "; ".join(said) or "no training forward was seen"
