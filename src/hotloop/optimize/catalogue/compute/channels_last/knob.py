"""channels_last as a knob: the layout of weights and optimizer state changed to and fro."""

from __future__ import annotations

import weakref
from typing import Any

from hotloop.optimize.catalogue.compute.channels_last.activation import MemoryFormat
from hotloop.probe.activation.knob import Knob


class MemoryFormatKnob(MemoryFormat, Knob):
    """Lays convolutions out with the channels innermost, and back.

    Args:
        dimensions: of the convolutions: 2 or 3.
    """

    settle_steps = 2

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self._is_on = False
        self._roots: weakref.WeakSet[Any] = weakref.WeakSet()
        self._stepping: weakref.WeakSet[Any] = weakref.WeakSet()

    def on_root(self, module: Any) -> None:
        """Remember it; nothing is changed before it is switched on."""
        self._roots.add(module)

    def switch(self, on: bool) -> None:
        """Change the layout of what is there."""
        self._is_on = on
        if on:
            for module in list(self._roots):
                super().on_root(module)
        else:
            for module in list(self._roots):
                self._as_before(module)
            self._converted = 0
        self._optimizers.clear()
        for optimizer in list(self._stepping):
            super()._before_step(optimizer, (), {})

    def _as_before(self, module: Any) -> None:
        for weight in self._weights(module):
            weight.data = weight.data.contiguous()
            if weight.grad is not None:
                weight.grad = weight.grad.contiguous()

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Change them while on."""
        return super().on_forward_inputs(module, args, kwargs) if self._is_on else (args, kwargs)

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Change it back while on."""
        return super().on_forward_output(module, output) if self._is_on else output

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Remember the optimizer; its state follows at the next switch."""
        self._stepping.add(optimizer)
        if self._is_on:
            super()._before_step(optimizer, args, kwargs)
