"""How often something may be done, so that it costs a share of the time at most."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Lets something be done again when enough time has passed since.

    Args:
        max_share: of the time, that it may take.
        clock: seconds; tests bring their own.
    """

    def __init__(self, max_share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_share = max_share
        self._clock = clock
        self._due_s = clock()

    def do(self, what: Callable[[], None]) -> None:
        """Do it, if it is due."""
        start = self._clock()
        if start < self._due_s:
            return
        what()
        end = self._clock()
        self._due_s = end + (end - start) / self._max_share
