"""Functions of the program that give every sample the same: called with the same arguments, with the same result.

While a few batches are made, Python's profiler tells of calls and returns of the program's own functions. Arguments
are compared by value where they are numbers and texts, by identity where not; results by what is in them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import FrameType
from typing import Any

from hotloop.probe.instruments.frames import Frames, Line, Owner, line_of

MAX_BATCHES = 3
MAX_SAMPLES = 256
MAX_NS = 500_000_000
"""So long is looked at: a batch of slow samples is enough."""
LEAST_CALLS = 3
MAX_VALUES = 10_000_000
"""Of a result: comparing more takes too long."""
_GENERATOR = 0x20 | 0x80 | 0x200
"""Flags of code that returns in pieces."""
_PLAIN = (int, float, str, bytes, bool, type(None))


@dataclass
class _Calls:
    """Calls from one line."""

    name: str
    parent: tuple[Line, str] | None
    num: int = 0
    spent_ns: int = 0
    given: Any = None
    result: Any = None
    same: bool = True
    kept: list[Any] = field(default_factory=list)
    """Arguments, so that no identity is given twice."""


class ConstantCalls:
    """Looks at the making of some batches, in the thread that makes them.

    Args:
        frames: tells the program's code.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._calls: dict[tuple[Line, str], _Calls] = {}
        self._open: list[tuple[FrameType, tuple[Line, str] | None, Any, int]] = []
        self._batches = self._samples = self._spent_ns = self._begin_ns = 0

    def begin(self) -> bool:
        """Begin to look, unless enough was seen or the program has a profiler of its own."""
        enough = self._batches >= MAX_BATCHES or self._samples >= MAX_SAMPLES or self._spent_ns >= MAX_NS
        if enough or sys.getprofile() is not None:
            return False
        self._open = []
        self._begin_ns = perf_counter_ns()
        sys.setprofile(self._event)
        return True

    def end(self, num_samples: int) -> None:
        """Stop looking."""
        sys.setprofile(None)
        self._spent_ns += perf_counter_ns() - self._begin_ns
        self._batches += 1
        self._samples += num_samples
        self._open = []

    def value(self) -> list[dict[str, Any]]:
        """Return the lines whose calls gave the same each time, the outermost ones, with their part of the time."""
        constant = {place for place, one in self._calls.items() if one.same and one.num >= LEAST_CALLS}
        return [
            {
                **place[0]._asdict(),
                "called": one.name,
                "num": one.num,
                "samples": self._samples,
                "share": one.spent_ns / max(1, self._spent_ns),
            }
            for place, one in self._calls.items()
            if place in constant and one.parent not in constant
        ]

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "call":
            if self._frames.owner(frame) is Owner.USER and not frame.f_code.co_flags & _GENERATOR:
                self._called(frame)
        elif event == "return" and self._open and self._open[-1][0] is frame:
            self._returned(value)

    def _called(self, frame: FrameType) -> None:
        caller = frame.f_back
        if caller is None:
            return
        place = (line_of(caller), frame.f_code.co_name)
        calls = self._calls.get(place)
        if calls is None:
            parent = next((one[1] for one in reversed(self._open)), None)
            calls = self._calls[place] = _Calls(frame.f_code.co_name, parent)
        given = None
        if calls.same:
            code = frame.f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            values = frame.f_locals
            given = tuple(_known(values.get(name), calls.kept) for name in names)
            if code.co_flags & 0x0C:  # *args or **kwargs
                calls.same = False
        self._open.append((frame, place, given, perf_counter_ns()))

    def _returned(self, value: Any) -> None:
        _, place, given, begin_ns = self._open.pop()
        calls = self._calls[place] if place is not None else None
        if calls is None:
            return
        calls.spent_ns += perf_counter_ns() - begin_ns
        calls.num += 1
        if not calls.same:
            return
        if calls.num == 1:
            calls.given, calls.result = given, value
        elif given != calls.given or not _equal(value, calls.result, 2):
            calls.same, calls.result, calls.kept = False, None, []


def _known(value: Any, kept: list[Any]) -> Any:
    """Return what tells an argument from others; what has no value of its own is kept, so that its identity stays."""
    if isinstance(value, _PLAIN):
        return type(value), value
    if len(kept) < MAX_SAMPLES:
        kept.append(value)
    return id(value)


def _equal(one: Any, other: Any, depth: int) -> bool:
    """Whether two results are the same in value; None and values that cannot be compared count as different."""
    if one is None or type(one) is not type(other):
        return False
    if isinstance(one, _PLAIN):
        return bool(one == other)
    if depth and isinstance(one, list | tuple):
        return len(one) == len(other) and all(
            _equal(mine, theirs, depth - 1) for mine, theirs in zip(one, other, strict=True)
        )
    shape = getattr(one, "shape", None)
    if shape is None or shape != other.shape or one.dtype != other.dtype:
        return False
    size = one.numel() if hasattr(one, "numel") else one.size
    same = (one == other).all() if size <= MAX_VALUES else False
    return bool(same)
