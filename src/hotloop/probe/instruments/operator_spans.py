"""When each operator and each kernel ran: the lanes of a timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STEPS = 2
"""The last ones of the window."""
MAX_SPANS = 3000
"""More cannot be told apart on a screen; the longest are kept."""
MAX_DEPTH = 5
"""Operators inside operators; what is deeper is left out."""
MAX_NAME = 160


def operator_spans(events: Sequence[Any], begin_ns: int, ends_ns: Sequence[int]) -> dict[str, Any]:
    """Return the lanes with the spans of the last steps.

    Args:
        events: of the profiler.
        begin_ns: when its times begin, on the monotonic clock.
        ends_ns: the window's beginning and the ends of its steps.

    Returns:
        `begin_ns` and `end_ns` of the timeline; `lanes` of (kind, number), the number of a thread or a stream; `names`;
        `spans` of (lane, name, begin in ns from `begin_ns`, nanoseconds, depth); `num`: how many there were.
    """
    first_ns, last_ns = ends_ns[-1 - STEPS] if len(ends_ns) > STEPS else ends_ns[0], ends_ns[-1]
    lanes: dict[tuple[str, int], int] = {}
    names: dict[str, int] = {}
    spans = []
    depths: dict[int, int] = {}
    for event in events:
        lane = _lane(event)
        depth = _depth(event, depths) if lane is not None else 0
        start_ns = begin_ns + round(event.time_range.start * 1e3)
        if lane is None or depth >= MAX_DEPTH or not first_ns <= start_ns < last_ns:
            continue
        spans.append(
            (
                lanes.setdefault(lane, len(lanes)),
                names.setdefault(event.name[:MAX_NAME], len(names)),
                start_ns - first_ns,
                round((event.time_range.end - event.time_range.start) * 1e3),
                depth,
            )
        )
    longest = sorted(spans, key=lambda span: -span[3])[:MAX_SPANS]
    return {
        "begin_ns": first_ns,
        "end_ns": last_ns,
        "lanes": list(lanes),
        "names": list(names),
        "spans": sorted(longest, key=lambda span: span[2]),
        "num": len(spans),
    }


def device_busy_us(events: Sequence[Any]) -> float | None:
    """Return how long the busiest device worked, whatever ran beside one another; None: none did.

    Kernels of a replayed graph belong to no operator: only here they count.
    """
    spans: dict[int, list[tuple[float, float]]] = {}
    for event in filter(_is_device_work, events):
        span = event.time_range.start, event.time_range.end
        spans.setdefault(event.device_index, []).append(span)
    return max(map(_covered, spans.values()), default=None)


def _covered(spans: list[tuple[float, float]]) -> float:
    covered, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered


def _is_device_work(event: Any) -> bool:
    """Whether a device did it: it also has the marks that `record_function` makes around work."""
    return event.device_type.name != "CPU" and not getattr(event, "is_user_annotation", False)


def _lane(event: Any) -> tuple[str, int] | None:
    """Return the thread or the stream that it ran on; None: it is no operator and no work of a device."""
    if event.device_type.name == "CPU":
        return ("operators", event.thread) if "::" in event.name else None
    return ("device", event.device_resource_id or 0) if _is_device_work(event) else None


def _depth(event: Any, depths: dict[int, int]) -> int:
    """Return how many operators it is inside of."""
    if id(event) not in depths:
        parent = event.cpu_parent
        depths[id(event)] = 0 if parent is None else _depth(parent, depths) + ("::" in parent.name)
    return depths[id(event)]
