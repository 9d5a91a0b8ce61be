"""The most that all processes of an arm hold together, looked at while they stand still."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from hotloop.machine.host.processes import is_helper
from hotloop.machine.host.tree_memory import tree_memory
from hotloop.model.tree_memory import TreeMemory

MAX_COST = 0.01
"""Of an arm's time, for counting pages: a process of 100 GB takes a second of it."""


class TreePeak:
    """Keeps the largest sample.

    Args:
        clock: seconds; monotonic.
        count: what some processes hold.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        count: Callable[[Iterable[int]], TreeMemory | None] = tree_memory,
    ) -> None:
        self._clock = clock
        self._count = count
        self._next_s = float("-inf")
        self.found: TreeMemory | None = None

    def look(self, pids: Callable[[], Iterable[int]]) -> None:
        """Take a sample, unless the last one cost too much for another so soon.

        Args:
            pids: gives the processes.
        """
        began = self._clock()
        if began < self._next_s:
            return
        seen = self._count(pid for pid in pids() if not is_helper(pid))
        ended = self._clock()
        self._next_s = ended + (ended - began) / MAX_COST
        if seen is not None and (self.found is None or seen.peak_bytes > self.found.peak_bytes):
            self.found = seen
