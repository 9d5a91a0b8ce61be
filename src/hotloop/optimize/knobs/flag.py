"""A global setting of torch as a knob."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.probe.activation.knob import Knob


class FlagKnob(Knob):
    """Sets a global setting while on.

    Args:
        get: returns the setting.
        put: sets it.
        wanted: its value while on.
        settle_steps: see `Knob`.
    """

    def __init__(
        self, get: Callable[[], Any], put: Callable[[Any], None], wanted: Any, settle_steps: int = 2
    ) -> None:
        self._get = get
        self._put = put
        self._wanted = wanted
        self.settle_steps = settle_steps
        self._before: Any = None
        self._differed = False

    def switch(self, on: bool) -> None:
        """Set it, or what was before."""
        if on:
            self._before = self._get()
            self._differed = self._differed or self._before != self._wanted
        self._put(self._wanted if on else self._before)

    def effect(self) -> tuple[bool, str]:
        """Return whether it was another one before."""
        return self._differed, f"set to {self._wanted!r} from {self._before!r}"
