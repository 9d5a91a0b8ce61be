"""What ran one after another, lane by lane, as rows of boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hotloop.model.operators import DetailedTimeline
from hotloop.model.step_series import TimelineSpan

Box = tuple[int, float, float, int]
"""Row, beginning and length in milliseconds, and the place of the name."""


DEEPEST = 200
"""Rows of a lane: what is nested deeper stands in the last one."""


class Lane(NamedTuple):
    """What one thread, stream or worker did."""

    name: str
    kind: str
    """See `TimelineLane`."""
    spans: Sequence[TimelineSpan]


def lanes(found: Iterable[Lane]) -> dict[str, Any]:
    """Return rows, each a depth of a lane, and the boxes that stand in them; times from the first of all."""
    found = [lane for lane in found if lane.spans]
    first_s = min((span.begin_s for lane in found for span in lane.spans), default=0.0)
    rows: list[dict[str, str]] = []
    names: dict[str, int] = {}
    boxes: list[Box] = []
    for lane in found:
        top = len(rows)
        depth = min(DEEPEST, max(span.depth for span in lane.spans))
        rows += [{"name": "" if at else lane.name, "kind": lane.kind} for at in range(depth + 1)]
        boxes += [
            (
                top + min(span.depth, depth),
                round((span.begin_s - first_s) * 1e3, 4),
                round((span.end_s - span.begin_s) * 1e3, 4),
                names.setdefault(span.name, len(names)),
            )
            for span in lane.spans
        ]
    return {"rows": rows, "names": list(names), "boxes": boxes}


def of_timeline(found: DetailedTimeline) -> Iterator[Lane]:
    """Yield its lanes under the names that people call them by."""
    threads = [lane.number for lane in found.lanes if lane.kind == "operators"]
    for lane in found.lanes:
        yield Lane(_name(lane.kind, lane.number, threads), lane.kind, lane.spans)


def _name(kind: str, number: int, threads: list[int]) -> str:
    if kind == "operators":
        return "operators" if len(threads) == 1 else f"operators, thread {1 + threads.index(number)}"
    return {"device": f"device, stream {number}", "worker": f"loader worker {number}"}.get(kind, kind)
