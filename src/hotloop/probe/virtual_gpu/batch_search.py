"""The largest batch that fits, found by virtual steps at each batch that is tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

MOST_TRIED = 12
"""Batches tried for one device: the line through two peaks mostly needs three."""
MOST_TIMES = 8
"""Factor between the largest batch tried and the next one: a program may loop over the samples of its batch."""


@dataclass(frozen=True)
class Peaks:
    """Of one batch size, in bytes."""

    allocated: int
    reserved: int


class BatchSearch:
    """Proposes batch sizes until one fits and the next larger one does not.

    Args:
        room: bytes that the allocator may reserve.
        known: peaks by batch size; what other searches tried serves, too.
    """

    def __init__(self, room: float, known: Mapping[int, Peaks]) -> None:
        self._room = room
        self._known = known
        self._num_tried = 0

    def next_size(self, most: float = math.inf) -> int | None:
        """Return the batch to try; None: it is found, or there is nothing left to try.

        Args:
            most: no larger one, since there is no time for it.
        """
        low, high = self._bracket()
        if high == low + 1 or self._num_tried >= MOST_TRIED:
            return None
        self._num_tried += 1
        size = int(min(self._between(low, high), most))
        return size if size > low else None

    def found(self) -> tuple[int, int | None]:
        """Return the largest batch seen to fit, 0 for none, and the smallest larger one seen not to, None for none."""
        return self._bracket()

    def _bracket(self) -> tuple[int, int | None]:
        fits = [size for size, peaks in self._known.items() if peaks.reserved <= self._room]
        low = max(fits, default=0)
        above = [size for size, peaks in self._known.items() if peaks.reserved > self._room and size > low]
        return low, min(above, default=None)

    def _between(self, low: int, high: int | None) -> int:
        most = high - 1 if high is not None else max(2, MOST_TIMES * low)
        if high is not None and self._num_tried > MOST_TRIED // 2:
            return (low + high) // 2
        guess = self._on_the_line(low, high)
        return min(max(guess if guess is not None else most, low + 1), most)

    def _on_the_line(self, low: int, high: int | None) -> int | None:
        """Return where the room ends on the line from the batch whose peak is nearest to it; None: it does not rise.

        The slope is that of tensors, which grow with the batch by a straight line; what is reserved comes in steps.
        """
        ends = [size for size in (low, high) if size]
        others = sorted(self._known, key=lambda size: abs(size - ends[0]))
        one, two = sorted(others[:2]) if len(others) > 1 else (0, 0)
        rise = self._known[two].allocated - self._known[one].allocated if two > one else 0
        if rise <= 0:
            return None
        nearest = min(ends, key=lambda size: abs(self._known[size].reserved - self._room))
        left = self._room - self._known[nearest].reserved
        return nearest + math.floor(left * (two - one) / rise)
