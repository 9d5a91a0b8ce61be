"""What a program that trains nothing gives those who wait for it: latency and throughput of its requests."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from hotloop.model.inference import Inference, Latency
from hotloop.model.observation import Anchor
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
        latency=latency([each[-1].end_s - each[0].begin_s for each in requests]),
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
    made = [_decoding(each) for each in requests]
    between = [after.end_s - before.end_s for each in made for before, after in itertools.pairwise(each)]
    if not between or not generates(sum(map(len, made)), len(made)):
        return found
    return Inference(
        requests_per_s=found.requests_per_s,
        latency=found.latency,
        first_token=latency(
            [tokens[0].end_s - each[0].begin_s for tokens, each in zip(made, requests, strict=True)]
        ),
        between_tokens=latency(between),
        forwards_per_request=fmean(map(len, made)),
    )


def _decoding(forwards: Sequence[Span]) -> list[Span]:
    """Return those of the model that makes the tokens: an encoder before it is called once."""
    most = Counter(span.slot for span in forwards).most_common(1)[0][0]
    return [span for span in forwards if span.slot == most]


def latency(samples_s: Sequence[float]) -> Latency:
    """Return quantiles of times in seconds, the median with its 95% interval."""
    summary = summarize(samples_s)
    return Latency(
        num=len(samples_s),
        p50_s=summary.p50_s,
        low_s=summary.low_s,
        high_s=summary.high_s,
        p95_s=summary.p95_s,
        p99_s=summary.p99_s,
    )
