"""What a program that trains nothing gives those who wait for it: latency and throughput of its requests."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from statistics import fmean

from hotloop.model.observation import Anchor, Inference, Latency
from hotloop.observe.decode.spans import Span, Timeline
from hotloop.observe.steps.rhythm import generates
from hotloop.observe.steps.step_windows import Window
from hotloop.probe.record.events import Kind
from hotloop.stats.summary import summarize


def inference(timeline: Timeline, anchor: Anchor, steady: Sequence[Window]) -> Inference | None:
    """Return what was seen in the steady steps; None: the program trains, or took no step."""
    requests = [forwards for forwards in _forwards(timeline, steady) if forwards] if anchor.infers else []
    if not requests:
        return None
    wall_s = sum(window.duration_s for window in steady)
    found = Inference(
        requests_per_s=len(requests) / wall_s,
        latency=_latency([each[-1].end_s - each[0].begin_s for each in requests]),
    )
    return _with_tokens(found, requests) if anchor.kind == "request" else found


def _forwards(timeline: Timeline, steady: Sequence[Window]) -> list[list[Span]]:
    """Return the outermost forwards of each step, in order."""
    spans = [
        span for span in timeline.spans if span.kind in {Kind.EVALUATE, Kind.FORWARD} and span.depth == 0
    ]
    ends = [span.end_s for span in spans]
    return [spans[bisect_right(ends, window.begin_s) : bisect_right(ends, window.end_s)] for window in steady]


def _with_tokens(found: Inference, requests: Sequence[Sequence[Span]]) -> Inference:
    between = [after.end_s - before.end_s for each in requests for before, after in itertools.pairwise(each)]
    num = sum(len(each) for each in requests)
    if not between or not generates(num, len(requests)):
        return found
    return Inference(
        requests_per_s=found.requests_per_s,
        latency=found.latency,
        first_token=_latency([each[0].duration_s for each in requests]),
        between_tokens=_latency(between),
        forwards_per_request=fmean(len(each) for each in requests),
    )


def _latency(samples_s: Sequence[float]) -> Latency:
    summary = summarize(samples_s)
    return Latency(
        num=len(samples_s),
        p50_s=summary.p50_s,
        low_s=summary.low_s,
        high_s=summary.high_s,
        p95_s=summary.p95_s,
        p99_s=summary.p99_s,
    )
