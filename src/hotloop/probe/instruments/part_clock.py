"""A clock for nested parts of a sample's making: each has the time it does not spend in a nested part."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, NamedTuple

from hotloop.probe.record.generators import GlobalGenerators

LOOKS = 8
"""Calls of a transform at which the global generators are looked at; a look takes 20 us."""


class Part(NamedTuple):
    """Something that is done for a sample or a batch."""

    kind: str
    """`own` (the data set's own code), `open`, `read`, `decode`, `transform`, `collate` or `hand_over`."""
    name: str
    path: str | None = None
    """Where the user's source does it, or makes the transform; None: not in the user's source."""
    line: int | None = None


@dataclass
class Spent:
    """What a part took.

    Attributes:
        own_ns: without the parts within it.
        looked: calls at which the generators were looked at.
        drew: of those, how many drew from them.
    """

    count: int = 0
    own_ns: int = 0
    looked: int = 0
    drew: int = 0


@dataclass
class _Open:
    part: Part
    begin_ns: int
    inner_ns: int = 0
    before: GlobalGenerators | None = None


class _Stack(threading.local):
    def __init__(self) -> None:
        self.open: list[_Open] = []


class PartClock:
    """Times parts, in any thread.

    Attributes:
        spent: by part.
        running: nothing is timed once it is False.
    """

    def __init__(self) -> None:
        self.spent: dict[Part, Spent] = {}
        self.running = True
        self._stack = _Stack()

    def counts(self, kind: str) -> bool:
        """Whether what begins now is a part: it is within a batch; what a transform calls is the transform's."""
        stack = self._stack.open
        if not self.running or not stack:
            return False
        return kind != "library" or stack[-1].part.kind != "transform"

    def inside(self) -> bool:
        """Whether this thread makes a batch."""
        return bool(self._stack.open)

    def begin(self, part: Part) -> None:
        """Begin a part; transforms are looked at for random numbers."""
        stack = self._stack.open
        before = None
        if part.kind == "transform" and self._of(part).looked < LOOKS:
            began = perf_counter_ns()
            before = GlobalGenerators()
            self._not_theirs(perf_counter_ns() - began)
        stack.append(_Open(part, perf_counter_ns(), 0, before))

    def end(self) -> None:
        """End the part that was begun last."""
        now = perf_counter_ns()
        one = self._stack.open.pop()
        whole = now - one.begin_ns
        spent = self._of(one.part)
        spent.count += 1
        spent.own_ns += whole - one.inner_ns
        self._not_theirs(whole)
        if one.before is not None:
            spent.looked += 1
            spent.drew += bool(one.before.drawn())
            self._not_theirs(perf_counter_ns() - now)

    def _not_theirs(self, nanoseconds: int) -> None:
        stack = self._stack.open
        if stack:
            stack[-1].inner_ns += nanoseconds

    def _of(self, part: Part) -> Spent:
        return self.spent.setdefault(part, Spent())

    def rows(self) -> list[dict[str, Any]]:
        """Return what was spent, for JSON."""
        return [
            {
                **part._asdict(),
                "count": spent.count,
                "own_ns": spent.own_ns,
                "random": spent.drew > 0 if spent.looked else None,
            }
            for part, spent in self.spent.items()
            if spent.count
        ]
