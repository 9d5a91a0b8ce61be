"""A knob made of an activation that does all of its work within each forward."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any

from hotloop.probe.activation.activation import Activation
from hotloop.probe.activation.knob import Knob


class Gated(Knob):
    """Lets an activation act while it is switched on.

    Args:
        inner: what acts in the forward; what it does elsewhere it does, on or off.
        settle_steps: see `Knob`.
        lasting: likewise.
    """

    def __init__(self, inner: Activation, settle_steps: int = 0, *, lasting: bool = False) -> None:
        self._inner = inner
        self.settle_steps = settle_steps
        self.lasting = lasting
        self.is_on = False

    def switch(self, on: bool) -> None:
        """Open or close the gate."""
        self.is_on = on

    def overrides(self, hook: str) -> bool:
        """Whether the inner one does something there."""
        return self._inner.overrides(hook)

    def on_torch(self) -> None:
        """Let the inner one prepare."""
        self._inner.on_torch()

    def on_root(self, module: Any) -> None:
        """Let the inner one prepare."""
        self._inner.on_root(module)

    def wrap_forward(self, module: Any, call: Any) -> Any:
        """Return what calls the inner one's replacement while on."""
        changed = self._inner.wrap_forward(module, call)
        if changed is call:
            return call

        @functools.wraps(call)
        def run(*args: Any, **kwargs: Any) -> Any:
            return (changed if self.is_on else call)(*args, **kwargs)

        return run

    def forward_context(self, module: Any) -> AbstractContextManager[Any] | None:
        """Return a context that is the inner one's while on, and nothing else."""
        context = self._inner.forward_context(module)
        return None if context is None else _While(self, context)

    def on_forward_inputs(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any]:
        """Return the inner one's arguments while on."""
        return self._inner.on_forward_inputs(module, args, kwargs) if self.is_on else (args, kwargs)

    def on_forward_output(self, module: Any, output: Any) -> Any:
        """Return the inner one's output while on."""
        return self._inner.on_forward_output(module, output) if self.is_on else output

    def effect(self) -> tuple[bool, str]:
        """Return what the inner one says."""
        return self._inner.effect()


class _While(AbstractContextManager[Any]):
    """Enters a context while a gate is open."""

    def __init__(self, gate: Gated, context: AbstractContextManager[Any]) -> None:
        self._gate = gate
        self._context = context
        self._entered = False

    def __enter__(self) -> Any:
        self._entered = self._gate.is_on
        return self._context.__enter__() if self._entered else None

    def __exit__(self, *error: Any) -> bool | None:
        return self._context.__exit__(*error) if self._entered else None
