"""In which phase of its step a moment lies, as far as memory is concerned.

What a forward saves is held until the backward: a forward lasts until the backward begins, the loss included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hotloop.observe.decode.spans import NS, Span
from hotloop.probe.record.events import Kind

FORWARD, BACKWARD, OPTIMIZER, DATA, EVALUATION, OTHER = (
    "forward", "backward", "optimizer", "data", "evaluation", "other",
)  # fmt: skip
_ASIDE = {
    Kind.DATA: DATA, Kind.ITERATOR: DATA, Kind.TRANSFER: DATA, Kind.OPTIMIZER: OPTIMIZER, Kind.EVALUATE: EVALUATION,
}  # fmt: skip
"""Spans that name what is neither forward nor backward."""


class MemoryPhases:
    """The phases of a window.

    Args:
        spans: of the process.
        begin_ns: when the window began.
        end_ns: when it ended.
    """

    def __init__(self, spans: Sequence[Span], begin_ns: int, end_ns: int) -> None:
        inside = [
            (each.kind, round(each.begin_s / NS), round(each.end_s / NS))
            for each in spans
            if each.end_s / NS >= begin_ns and each.begin_s / NS <= end_ns
        ]
        self.forwards = sorted(begin for kind, begin, _ in inside if kind is Kind.FORWARD)
        self.backwards = sorted(begin for kind, begin, _ in inside if kind is Kind.BACKWARD)
        turns = [(begin, FORWARD) for begin in self.forwards]
        for kind, begin, end in inside:
            if kind is Kind.BACKWARD:
                turns += [(begin, BACKWARD), (end, OTHER)]
        turns.sort()
        self._times = [time for time, _ in turns]
        self._names = [name for _, name in turns]
        self._aside = sorted((begin, end, _ASIDE[kind]) for kind, begin, end in inside if kind in _ASIDE)
        self._asides = [begin for begin, _, _ in self._aside]

    def at(self, time_ns: int) -> str:
        """Return the phase of a moment."""
        place = bisect_right(self._times, time_ns) - 1
        name = self._names[place] if place >= 0 else OTHER
        return self._beside(time_ns) if name is OTHER else name

    def next_backward(self, time_ns: int) -> int | None:
        """Return when the next backward begins."""
        return _next(self.backwards, time_ns)

    def next_forward(self, time_ns: int) -> int | None:
        """Return when the next forward begins."""
        return _next(self.forwards, time_ns)

    def _beside(self, time_ns: int) -> str:
        place = bisect_right(self._asides, time_ns) - 1
        for begin, end, name in reversed(self._aside[max(0, place - 3) : place + 1]):
            if begin <= time_ns <= end:
                return name
        return OTHER


def _next(times: Sequence[int], time_ns: int) -> int | None:
    place = bisect_right(times, time_ns)
    return times[place] if place < len(times) else None
