"""Host samples and calls by line as the boxes of a flame graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from hotloop.model.deep import CallSites, HostSamples

LEAST = 0.002
"""Of the whole: a narrower box is not seen."""
MAX_DEPTH = 60


Box = tuple[int, float, float, int]
"""Depth, beginning and width in seconds, and the place of the name."""


class _Node(msgspec.Struct):
    name: str
    spent_s: float = 0.0
    inside: dict[str, _Node] = {}


def flame(host: HostSamples, process: str) -> dict[str, Any] | None:
    """Return boxes as (depth, begin, width, name), times in seconds; None: no samples of this kind of process."""
    return _boxes(_stacks(host, process))


def flame_of_calls(found: CallSites) -> dict[str, Any] | None:
    """Return the boxes of synchronizations, copies and creations, times in seconds a step; None: there are none."""
    return _boxes(
        (
            (one.kind, one.path, f"{one.function} ({one.path.rsplit('/', 1)[-1]}:{one.line})", one.call),
            one.time_per_step_s,
        )
        for one in found.sites
    )


def _boxes(stacks: Iterable[tuple[Sequence[str], float]]) -> dict[str, Any] | None:
    root = _Node(name="all")
    for path, spent_s in stacks:
        root.spent_s += spent_s
        node = root
        for name in path:
            node = node.inside.setdefault(name, _Node(name=name))
            node.spent_s += spent_s
    if not root.spent_s:
        return None
    names: dict[str, int] = {}
    boxes: list[Box] = []
    _lay(root, 0, 0.0, root.spent_s * LEAST, names, boxes)
    return {"names": list(names), "boxes": boxes, "total": root.spent_s}


def _stacks(host: HostSamples, process: str) -> Iterator[tuple[list[str], float]]:
    for sample in host.samples:
        if sample.process == process:
            path = [f"[{sample.phase}]"] if sample.phase else []
            path += [_frame(host, number) for number in sample.stack[: MAX_DEPTH - 1]]
            yield path, sample.spent_s


def _frame(host: HostSamples, number: int) -> str:
    frame = host.frames[number]
    return f"{frame.function} ({frame.path.rsplit('/', 1)[-1]}:{frame.line})"


def _lay(
    node: _Node,
    depth: int,
    begin: float,
    least: float,
    names: dict[str, int],
    boxes: list[Box],
) -> None:
    boxes.append((depth, round(begin, 9), round(node.spent_s, 9), names.setdefault(node.name, len(names))))
    for child in sorted(node.inside.values(), key=lambda one: -one.spent_s):
        if child.spent_s >= least:
            _lay(child, depth + 1, begin, least, names, boxes)
        begin += child.spent_s
