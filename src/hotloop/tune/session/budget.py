"""The budget: how much time is left, on a clock that tests can turn."""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """A span of time that runs down.

    Args:
        seconds: how long.
        clock: seconds that only grow.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._start = clock()

    def spent(self) -> float:
        """Return the seconds gone."""
        return self._clock() - self._start

    def left(self) -> float:
        """Return the seconds that remain; negative when overdrawn."""
        return self.seconds - self.spent()

    def charge(self, seconds: float) -> None:
        """Count time that was spent before this span began."""
        self._start -= seconds

    def now(self) -> float:
        """Return the clock."""
        return self._clock()
