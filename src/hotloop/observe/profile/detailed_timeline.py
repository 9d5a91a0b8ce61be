"""The lanes of the last steps under the profiler: phases, operators, device streams, loader workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from hotloop.model.operators import DetailedTimeline, TimelineLane
from hotloop.model.step_series import TimelineSpan
from hotloop.observe.decode.spans import NS, Timeline
from hotloop.observe.steps.phase_at import NAMES

MAX_BATCHES = 400
"""Of one worker."""


class Spans(msgspec.Struct, frozen=True, kw_only=True):
    """As the instrument wrote them; see `operator_spans`."""

    begin_ns: int
    end_ns: int
    lanes: list[tuple[str, int]]
    names: list[str]
    spans: list[tuple[int, int, int, int, int]]
    num: int


def detailed_timeline(seen: Spans, lead: Timeline, folder: Path, pid: int) -> DetailedTimeline:
    """Return the lanes: the phases first, then operators, streams and workers.

    Args:
        seen: operators and device work.
        lead: the records of the same process.
        folder: where workers wrote when they made batches.
        pid: the process.
    """
    window = seen.begin_ns * NS, seen.end_ns * NS
    lanes = [_lane("phases", 0, list(_phases(lead, window)))]
    order = sorted(range(len(seen.lanes)), key=lambda at: (seen.lanes[at][0] == "device", seen.lanes[at][1]))
    for at in order:
        kind, number = seen.lanes[at]
        spans = [
            TimelineSpan(seen.names[name], begin * NS, (begin + length) * NS, depth)
            for lane, name, begin, length, depth in seen.spans
            if lane == at
        ]
        lanes.append(_lane(kind, number, spans))
    lanes += [_lane("worker", number, spans) for number, spans in enumerate(_workers(folder, pid, window))]
    kept = tuple(lane for lane in lanes if lane.spans)
    return DetailedTimeline(window_s=window[1] - window[0], num_spans=seen.num, lanes=kept)


def _lane(kind: str, number: int, spans: list[TimelineSpan]) -> TimelineLane:
    return TimelineLane(kind=kind, number=number, spans=tuple(spans), busy_s=_busy_s(spans))


def _busy_s(spans: Sequence[TimelineSpan]) -> float:
    busy_s, until_s = 0.0, float("-inf")
    for span in sorted(spans, key=lambda one: one.begin_s):
        busy_s += max(0.0, span.end_s - max(span.begin_s, until_s))
        until_s = max(until_s, span.end_s)
    return busy_s


def _phases(lead: Timeline, window: tuple[float, float]) -> Iterator[TimelineSpan]:
    begin_s, end_s = window
    for span in sorted(lead.spans, key=lambda one: one.begin_s):
        if span.kind in NAMES and span.end_s > begin_s and span.begin_s < end_s:
            begins, ends = max(span.begin_s, begin_s), min(span.end_s, end_s)
            yield TimelineSpan(NAMES[span.kind], begins - begin_s, ends - begin_s, span.depth)


def _workers(folder: Path, pid: int, window: tuple[float, float]) -> Iterator[list[TimelineSpan]]:
    """Yield when each worker made batches, of those that did so within the window."""
    begin_s, end_s = window
    for path in sorted(folder.glob(f"fetches-{pid}-*.bin")):
        raw = path.read_bytes()
        times = np.frombuffer(raw[: len(raw) // 16 * 16], "<i8").reshape(-1, 2) * NS
        made = [
            TimelineSpan("batch", max(begin, begin_s) - begin_s, min(end, end_s) - begin_s, 0)
            for begin, end in times.tolist()
            if end > begin_s and begin < end_s
        ]
        if made:
            yield made[:MAX_BATCHES]
