"""The course of a program from line to line: when each line of the user's began, and how many graph nodes there were.

`sys.settrace` calls back at each line. Autograd numbers the nodes of its graph in the order in which a thread makes
them; the number at the beginning of a line and that at the next one enclose the nodes that the line has made.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from time import monotonic_ns, thread_time_ns
from types import CodeType, FrameType
from typing import Any

from hotloop.probe.record.call_site import is_users

MAX_EVENTS = 400_000
"""A line costs about a microsecond: it takes less than half a second of the program's time."""
READ_EVERY_NS = 500_000
"""The processor's clock takes 0.3 us to read, 5 us on a virtual machine; a thread loses its core for milliseconds."""
Place = tuple[int, str, int, str]
"""The place that calls (-1: none), path, line and function."""


class LineTrace:
    """Follows the thread that starts it.

    Args:
        num_nodes: returns how many nodes this thread has made.
    """

    def __init__(self, num_nodes: Callable[[], int]) -> None:
        self.places: list[Place] = []
        """Each line under each stack of the user's lines that called it."""
        self.full = False
        """So many lines ran that it gave up."""
        self._num_nodes = num_nodes
        self._known: dict[tuple[int, CodeType, int], int] = {}
        self._at = array("q")
        self._times = array("q")
        self._spent = array("q")
        """Of the processor, where its clock was read; else -1."""
        self._next_ns = 0
        self._nodes = array("q")
        self._here = -1
        self._traced: list[tuple[FrameType, Any]] = []

    def start(self, frame: FrameType) -> None:
        """Begin, in a program that has no trace function of its own.

        Args:
            frame: the innermost one of the program.
        """
        stack: list[FrameType] = []
        each: FrameType | None = frame
        while each is not None:
            stack.append(each)
            each = each.f_back
        for one in reversed(stack):
            if is_users(one.f_code):
                base = self._here
                self._here = self._place(base, one.f_code, one.f_lineno or 0)
                self._traced.append((one, one.f_trace))
                one.f_trace = self._local(base)
        self._note(self._here)
        sys.settrace(self._called)

    def end(self) -> None:
        """Leave the program alone; may be called twice."""
        sys.settrace(None)
        while self._traced:
            frame, before = self._traced.pop()
            frame.f_trace = before

    @property
    def num_events(self) -> int:
        """How often a line has begun or gone on."""
        return len(self._at)

    def stretches(self, num: int) -> list[tuple[int, bool, int]]:
        """Return what ran between the first events.

        Each is the place, whether its line begins (else it goes on after a call), and for how many nanoseconds. The
        time in which the thread had lost its core, as the clock of the processor tells, is taken off the longest.
        """
        found = [
            (at >> 1, not at & 1, after - before)
            for at, (before, after) in zip(self._at, pairwise(self._times[:num]), strict=False)
        ]
        reads = [(at, self._times[at], spent) for at, spent in enumerate(self._spent[:num]) if spent >= 0]
        for (first, begin_ns, before), (last, end_ns, after) in pairwise(reads):
            lost = max(0, end_ns - begin_ns - (after - before))
            longest = max(range(first, last), key=lambda at: found[at][2])
            place, begins, spent = found[longest]
            found[longest] = (place, begins, max(0, spent - lost))
        return found

    def window_ns(self, num: int) -> tuple[int, int]:
        """Return when the first of so many events was, and the last, on the monotonic clock."""
        return self._times[0], self._times[num - 1]

    def stretch_at(self, time_ns: int) -> int:
        """Return the number of the stretch that ran at a moment; -1: it was before the first line."""
        return bisect_right(self._times, time_ns) - 1

    def place_at(self, time_ns: int) -> int | None:
        """Return the place that ran at a moment; None: before the first line."""
        return self._found(bisect_right(self._times, time_ns))

    def place_of(self, node: int) -> int | None:
        """Return the place that made a node; None: it was made before."""
        return self._found(bisect_right(self._nodes, node))

    def _found(self, after: int) -> int | None:
        place = self._at[after - 1] >> 1 if after else -1
        return place if place >= 0 else None

    def _place(self, base: int, code: CodeType, line: int) -> int:
        key = (base, code, line)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.places)
            self.places.append((base, code.co_filename, line, code.co_name))
        return known

    def _note(self, place: int, goes_on: int = 0) -> None:
        self._at.append(place << 1 | goes_on)
        now = monotonic_ns()
        self._times.append(now)
        if now >= self._next_ns:
            self._next_ns = now + READ_EVERY_NS
            self._spent.append(thread_time_ns())
        else:
            self._spent.append(-1)
        self._nodes.append(self._num_nodes())

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        if event != "call" or not is_users(frame.f_code):
            return None
        if len(self._at) >= MAX_EVENTS:
            self.full = True
            self.end()
            return None
        return self._local(self._here)

    def _local(self, base: int) -> Any:
        """Return the trace function of a frame.

        Args:
            base: the place that called it; it goes on when the frame has ended.
        """
        known, note = self._known, self._note

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                code, line = frame.f_code, frame.f_lineno
                place = known.get((base, code, line))
                self._here = place if place is not None else self._place(base, code, line)
                note(self._here)
                if len(self._at) >= MAX_EVENTS:
                    self.full = True
                    self.end()
            elif event == "return":
                self._here = base
                note(base, 1)
            return trace

        return trace
