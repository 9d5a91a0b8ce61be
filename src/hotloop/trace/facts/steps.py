"""The steps that a trace shows, from the profiler's own step marks."""

import re

import msgspec
import numpy as np

from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import Trace

_STEP = re.compile(r"^ProfilerStep#(\d+)$")


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
    return tuple(Step(number, start, end) for start, end, number in sorted(steps))
