"""The steps that a trace shows, from the profiler's own step marks."""

import re

import msgspec
import numpy as np

from hotloop.trace.facts.intervals import union
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import Trace

_STEP = re.compile(r"^ProfilerStep#(\d+)$")
MARK = re.compile(r"^ProfilerStep#|^Profiler|^enumerate\(DataLoader\)")
"""Marks that are operators by category in older traces, and dispatch nothing themselves."""
_LOADING = re.compile(r"^enumerate\(DataLoader\)")


class Step(msgspec.Struct, frozen=True):
    """One step on the host; times in nanoseconds of the trace's clock."""

    number: int
    start_ns: int
    end_ns: int


def find_steps(trace: Trace) -> tuple[Step, ...]:
    """Steps in order of time; empty where the program never called `prof.step()`."""
    numbers = {
        index: int(found.group(1)) for index, name in enumerate(trace.names) if (found := _STEP.match(name))
    }
    if not numbers:
        return ()
    host = trace.host
    marked = np.isin(host.name, list(numbers)) & (
        (host.kind == Kind.ANNOTATION) | (host.kind == Kind.OPERATOR)
    )
    # One step may be marked on several threads; one number may come again in a trace of several loops.
    steps = {
        (int(host.start[row]), int(host.end[row]), numbers[int(host.name[row])])
        for row in np.flatnonzero(marked)
    }
    in_order = tuple(Step(number, start, end) for start, end, number in sorted(steps))
    return in_order[:-1] if len(in_order) > 1 and not _does_work(trace, in_order[-1]) else in_order


def _does_work(trace: Trace, step: Step) -> bool:
    """Whether anything but loading ran in a step: `prof.step()` opens a mark after the last step, too."""
    host = trace.host
    inside = (host.start >= step.start_ns) & (host.start < step.end_ns)
    rows = np.flatnonzero(inside & np.isin(host.kind, (Kind.OPERATOR, Kind.CALL)))
    rows = rows[~_named(trace, MARK)[host.name[rows]]]
    loading = np.flatnonzero(inside & _named(trace, _LOADING)[host.name] & (host.kind != Kind.PYTHON))
    loaded = union(host.start[loading], host.end[loading])
    return bool(np.any(loaded.within(host.start[rows], host.end[rows]) < host.end[rows] - host.start[rows]))


def _named(trace: Trace, pattern: "re.Pattern[str]") -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.array([pattern.search(name) is not None for name in trace.names] or [False])
