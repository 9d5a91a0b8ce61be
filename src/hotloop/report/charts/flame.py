"""Host samples as the boxes of a flame graph."""

from __future__ import annotations

from typing import Any

import msgspec

from hotloop.model.deep import HostSamples

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
    root = _tree(host, process)
    if not root.spent_s:
        return None
    names: dict[str, int] = {}
    boxes: list[Box] = []
    _lay(root, 0, 0.0, root.spent_s * LEAST, names, boxes)
    return {"names": list(names), "boxes": boxes, "total": root.spent_s}


def _tree(host: HostSamples, process: str) -> _Node:
    root = _Node(name="all")
    for sample in host.samples:
        if sample.process != process:
            continue
        path = [f"[{sample.phase}]"] if sample.phase else []
        path += [_frame(host, number) for number in sample.stack[: MAX_DEPTH - 1]]
        root.spent_s += sample.spent_s
        node = root
        for name in path:
            node = node.inside.setdefault(name, _Node(name=name))
            node.spent_s += sample.spent_s
    return root


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
    boxes.append((depth, round(begin, 6), round(node.spent_s, 6), names.setdefault(node.name, len(names))))
    for child in sorted(node.inside.values(), key=lambda one: -one.spent_s):
        if child.spent_s >= least:
            _lay(child, depth + 1, begin, least, names, boxes)
        begin += child.spent_s
