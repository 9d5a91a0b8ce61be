"""What disturbed the devices of a run, and when: a screening's holds are too short for a driver to tell of one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hotloop.tune.trials.device_neighbours import SHORTEST_LOOK_S, DeviceNeighbours

Span = tuple[float, float]
"""Seconds of the machine's monotonic clock, which all its processes share."""


class DeviceLooks:
    """Looks at the devices, one look after the other, for as long as a run lasts.

    Args:
        neighbours: does the looking; None: no driver tells of the devices.
        look_s: of one look.
    """

    def __init__(self, neighbours: DeviceNeighbours | None, look_s: float = SHORTEST_LOOK_S) -> None:
        self._neighbours = neighbours
        self._look_s = look_s
        self._over = threading.Event()
        self._disturbed: list[Span] = []

    @contextmanager
    def looking(self) -> Iterator[DeviceLooks]:
        """Look from now on, until the block ends."""
        if self._neighbours is None:
            yield self
            return
        looker = threading.Thread(target=self._look, args=(self._neighbours,), daemon=True)
        looker.start()
        try:
            yield self
        finally:
            self._over.set()
            looker.join()

    def _look(self, neighbours: DeviceNeighbours) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            # Which knobs are on decides over the clocks, so a fallen clock says nothing here.
            _, why = neighbours.during(lambda: self._over.wait(self._look_s), None)
            if why is not None:
                self._disturbed.append((began, time.monotonic()))

    def disturbed(self, span: Span) -> bool:
        """Whether something else used the devices, or slowed them down, at any time within a span."""
        began, ended = span
        return any(first < ended and began < last for first, last in tuple(self._disturbed))
