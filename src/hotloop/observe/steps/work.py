"""What each step has to do, whatever time it takes: calls of models, and what went into them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.rhythm import NAMES
from hotloop.observe.steps.step_windows import Window
from hotloop.probe.record.events import Kind

_CALLS = frozenset(NAMES[kind] for kind in (Kind.FORWARD, Kind.EVALUATE, Kind.BACKWARD))


def work_of(timeline: Timeline, steps: Sequence[Window]) -> dict[str, list[float]]:
    """Return columns by name, one number a step; NaN where only a step's end was recorded."""
    calls = [float(sum(token in _CALLS for token in step.tokens)) for step in steps]
    samples, tokens = [0.0] * len(steps), [0.0] * len(steps)
    ends = [step.end_s for step in steps]
    for size in timeline.sizes:
        at = bisect_right(ends, size.begin_s)
        if at < len(steps) and size.begin_s >= steps[at].begin_s:
            samples[at] += size.samples
            tokens[at] += size.tokens
    columns = {"calls": calls, "samples": samples, "tokens": tokens}
    return {
        name: [float("nan") if step.lean else value for step, value in zip(steps, column, strict=True)]
        for name, column in columns.items()
        if any(column)
    }
