"""Host events grouped by where they are in the call tree: modules, annotations and operators, not by name alone."""

import re
from dataclasses import dataclass

import numpy as np

from hotloop.trace.facts.operators import device_time_by_row
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.kinds import Kind

_PASSED_OVER = re.compile(r"^ProfilerStep#|^PyTorch Profiler")
"""Marks that differ from run to run and say nothing of the place."""


@dataclass(frozen=True)
class CallPaths:
    """Every place in the call tree, with what ran there."""

    paths: list[tuple[str, ...]]
    """Names from the outside in."""
    num: Int64
    device_ns: Int64
    """Launched there, what is called from there included."""
    host_ns: Int64
    first_row: Array
    """A host row that stands for each place."""


def call_paths(linked: LinkedTrace) -> CallPaths:
    """The places of a trace; Python functions that are no modules are passed over, their lines move."""
    trace, nesting = linked.trace, linked.nesting
    host = trace.host
    is_module = np.array([name.startswith("nn.Module: ") for name in trace.names] or [False])
    passed = np.array([_PASSED_OVER.match(name) is not None for name in trace.names] or [False])
    kinds = np.isin(host.kind, (Kind.OPERATOR, Kind.ANNOTATION)) & ~passed[host.name]
    wanted = kinds | ((host.kind == Kind.PYTHON) & is_module[host.name])
    nearest = nesting.nearest(wanted)
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(nesting.depth[rows], kind="stable")]
    above = np.where(nesting.parent[rows] >= 0, nearest[np.maximum(nesting.parent[rows], 0)], NONE)
    device = _inclusive(linked, rows, above)
    place, paths = _places(linked, rows, above)
    _, first = np.unique(place, return_index=True)
    num = len(paths)
    return CallPaths(
        paths=paths,
        num=np.bincount(place, minlength=num),
        device_ns=_sums(place, device[rows], num),
        host_ns=_sums(place, host.end[rows] - host.start[rows], num),
        first_row=rows[first],
    )


def _inclusive(linked: LinkedTrace, rows: Array, above: Array) -> Int64:
    total: Int64 = device_time_by_row(linked)[0].copy()
    levels = linked.nesting.depth[rows]
    for level in sorted(set(levels.tolist()), reverse=True):
        chosen = np.flatnonzero((levels == level) & (above >= 0))
        np.add.at(total, above[chosen], total[rows[chosen]])
    return total


def _places(linked: LinkedTrace, rows: Array, above: Array) -> tuple[Array, list[tuple[str, ...]]]:
    """Number of each row's place; a place is its parent's place and a name."""
    numbers: dict[tuple[int, int], int] = {}
    paths: list[tuple[str, ...]] = []
    place_of_row: dict[int, int] = {}
    place = np.empty(len(rows), dtype=np.int64)
    names = linked.trace.host.name[rows].tolist()
    for index, (row, parent, name) in enumerate(zip(rows.tolist(), above.tolist(), names, strict=True)):
        outer = place_of_row.get(parent, NONE)
        number = numbers.setdefault((outer, name), len(paths))
        if number == len(paths):
            paths.append((*(paths[outer] if outer >= 0 else ()), linked.trace.names[name]))
        place[index] = place_of_row[row] = number
    return place, paths


def _sums(place: Array, values: Int64, num: int) -> Int64:
    return np.bincount(place, weights=values.astype(np.float64), minlength=num).astype(np.int64)
