"""The raw steps of a process, kept for drawing and export."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hotloop.model.observation import Anchor, Phase
from hotloop.model.step_series import StepKind, StepSeries, TimelineSpan
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.steps.phase_at import NAMES
from hotloop.observe.steps.step_windows import Window, windows
from hotloop.observe.steps.work import work_of
from hotloop.probe.record.events import Kind

DETAILED = 12
"""Steps whose spans are kept: some more than a screen shows side by side."""
MAX_SPANS = 4000
"""Of a step with thousands of micro-batches not all can be told apart on a screen."""


def step_series(
    timeline: Timeline, anchor: Anchor, steady: Sequence[Window], rank: int | None, begin_s: float
) -> StepSeries:
    """Return every step of a process but the first, which holds the set-up.

    Args:
        timeline: its record.
        anchor: what ends a step.
        steady: the steps that figures are taken from.
        rank: the process's; None: it is not a rank.
        begin_s: when the command was started.
    """
    steps = windows(timeline, anchor)
    kinds = _kinds(steps, steady)
    return StepSeries(
        rank=rank,
        pid=timeline.pid,
        num=len(steps),
        begin_s=np.array([step.begin_s - begin_s for step in steps], dtype="<f8").tobytes(),
        duration_s=_column([step.duration_s for step in steps]),
        phases={
            phase.value: _column([float("nan") if step.lean else step.phases[phase] for step in steps])
            for phase in Phase
            if any(step.phases[phase] for step in steps)
        },
        kind=bytes(kinds),
        work={name: _column(column) for name, column in work_of(timeline, steps).items()},
        epochs=_with(steps, Kind.ITERATOR),
        evaluations=_with(steps, Kind.EVALUATE),
        checkpoints=_with(steps, Kind.SAVE),
        spans=_spans(timeline, steady, begin_s),
    )


def _column(values: Sequence[float]) -> bytes:
    return np.array(values, dtype="<f4").tobytes()


def _kinds(steps: Sequence[Window], steady: Sequence[Window]) -> list[int]:
    first_s = steady[0].begin_s if steady else float("inf")
    return [_kind(step, first_s) for step in steps]


def _kind(step: Window, first_s: float) -> StepKind:
    if step.deep:
        return StepKind.PROFILED
    if step.lean:
        return StepKind.UNTIMED
    if not step.regular:
        return StepKind.IRREGULAR
    return StepKind.WARM_UP if step.begin_s < first_s else StepKind.STEADY


def _with(steps: Sequence[Window], kind: Kind) -> tuple[int, ...]:
    return tuple(number for number, step in enumerate(steps) if kind in step.parts)


def _spans(timeline: Timeline, steady: Sequence[Window], begin_s: float) -> tuple[TimelineSpan, ...]:
    detailed = steady[-DETAILED:]
    if not detailed:
        return ()
    first_s, last_s = detailed[0].begin_s, detailed[-1].end_s
    found = [
        TimelineSpan(
            NAMES.get(span.kind, span.kind.name.lower()),
            span.begin_s - begin_s,
            span.end_s - begin_s,
            span.depth,
        )
        for span in timeline.spans
        if span.begin_s >= first_s and span.end_s <= last_s and span.kind is not Kind.PAUSE
    ]
    return tuple(sorted(found, key=lambda span: span.begin_s)[:MAX_SPANS])
