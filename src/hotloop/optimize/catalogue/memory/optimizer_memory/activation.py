"""The activations of optimizer_memory: optimizers that step parameter by parameter, or keep their state in 8 bits."""

from __future__ import annotations

import inspect
from typing import Any

from hotloop.probe.activation.activation import Activation

EIGHT_BIT = {"Adam": "Adam8bit", "AdamW": "AdamW8bit"}
"""torch's optimizers, and what torchao calls the same with state in 8 bits."""
MIB = 1 << 20


class OneByOne(Activation):
    """Makes torch's optimizers step one parameter after the other, without lists of temporaries."""

    def __init__(self) -> None:
        self._num_changed = 0
        self._stepped: set[str] = set()

    def on_torch(self) -> None:
        """Watch the steps."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        register_optimizer_step_pre_hook(self._before_step)

    def on_optimizer(self, cls: type, keywords: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords with foreach off; a fused step has no temporaries and stays."""
        has = cls.__module__.startswith("torch.optim") and "foreach" in inspect.signature(cls).parameters
        if not has or keywords.get("fused"):
            return keywords
        self._num_changed += 1
        return {**keywords, "foreach": False}

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if optimizer.param_groups[0].get("foreach") is False:
            self._stepped.add(type(optimizer).__name__)

    def effect(self) -> tuple[bool, str]:
        """Return whether an optimizer stepped so."""
        if self._num_changed and self._stepped:
            return True, f"{', '.join(sorted(self._stepped))} steps one parameter at a time"
        return False, "no optimizer of torch was made that could step one parameter at a time"


class EightBitState(Activation):
    """Puts torchao's 8-bit optimizers in the place of torch's, before the program takes them from `torch.optim`."""

    def __init__(self) -> None:
        self._made: list[Any] = []

    def on_torch(self) -> None:
        """Exchange the classes."""
        import torch
        from torchao import optim

        for name, other in EIGHT_BIT.items():
            setattr(torch.optim, name, _standing_for(getattr(optim, other), name, self._made))

    def effect(self) -> tuple[bool, str]:
        """Return whether state is kept in 8 bits."""
        states = [
            value
            for optimizer in self._made
            for state in optimizer.state.values()
            for value in state.values()
            if "8bit" in type(value).__name__.lower()
        ]
        values = sum(each.numel() for each in states)
        return bool(states), f"{len(states)} states of {values} values in 8 bits"


def _standing_for(eight_bit: type, name: str, made: list[Any]) -> type:
    """Return a class with the 8-bit step that takes what torch's takes; keywords that choose a kernel are left out."""
    taken = frozenset(inspect.signature(eight_bit).parameters)

    def init(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        eight_bit.__init__(  # type: ignore[misc]
            self, params, *args, **{word: value for word, value in kwargs.items() if word in taken}
        )
        made.append(self)

    return type(name, (eight_bit,), {"__init__": init, "__module__": "torch.optim"})
