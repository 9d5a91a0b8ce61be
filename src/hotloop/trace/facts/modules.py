"""Device time by `nn.Module`, backward passes included, where the trace has modules."""

import re

import msgspec
import numpy as np

from hotloop.trace.facts.operators import device_time_by_row
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.kinds import Kind

_MODULE = re.compile(r"^nn\.Module: (.+)$")


class ModuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one module instance."""

    name: str
    num: int
    host_us: float
    device_us: float
    """Launched inside it, its children included."""
    device_self_us: float
    backward_us: float
    """The part of `device_us` that ran in backward passes, joined to the module by sequence numbers."""


def module_rows(linked: LinkedTrace, limit: int | None = None) -> tuple[ModuleRow, ...]:
    """Modules by device time, then by host time, the largest first.

    Empty where no module was recorded (`with_stack`, `with_modules`).
    """
    trace = linked.trace
    host = trace.host
    is_module = np.array([_MODULE.match(name) is not None for name in trace.names] or [False])
    wanted = (host.kind == Kind.PYTHON) & is_module[host.name]
    if not np.any(wanted):
        return ()
    nearest = linked.nesting.nearest(wanted)
    device_ns, _ = device_time_by_row(linked)
    backward_to = _forward_rows(linked)
    launching = np.flatnonzero(device_ns)
    direct = nearest[launching]
    joined = np.where(direct == NONE, _through(backward_to[launching], nearest), NONE)
    own = np.zeros(len(host), dtype=np.int64)
    backward = np.zeros(len(host), dtype=np.int64)
    np.add.at(own, direct[direct != NONE], device_ns[launching[direct != NONE]])
    np.add.at(own, joined[joined != NONE], device_ns[launching[joined != NONE]])
    np.add.at(backward, joined[joined != NONE], device_ns[launching[joined != NONE]])
    rows = np.flatnonzero(wanted)
    total, total_backward = (
        _with_children(linked, rows, nearest, own),
        _with_children(linked, rows, nearest, backward),
    )
    return _grouped(linked, rows, own, total, total_backward)[:limit]


def _through(rows: Array, nearest: Array) -> Array:
    return np.where(rows >= 0, nearest[np.maximum(rows, 0)], NONE)


def _forward_rows(linked: LinkedTrace) -> Array:
    """For each host row under a backward operator: the forward operator's row; -1 elsewhere."""
    table, host = linked.trace.operators, linked.trace.host
    forward = np.full(len(host), NONE, dtype=np.int32)
    is_backward = (table.forward_thread > 0) & (table.sequence >= 0)
    sources = np.flatnonzero((table.sequence >= 0) & ~is_backward)
    if not len(sources) or not np.any(is_backward):
        return forward
    # Of several operators with one number the innermost, recorded last, made the autograd node.
    by_number = {
        int(number): int(row) for number, row in zip(table.sequence[sources], table.row[sources], strict=True)
    }
    for number, row in zip(
        table.sequence[is_backward].tolist(), table.row[is_backward].tolist(), strict=True
    ):
        forward[row] = by_number.get(number, NONE)
    marked = linked.nesting.nearest(forward != NONE)
    return np.where(marked >= 0, forward[np.maximum(marked, 0)], NONE)


def _with_children(linked: LinkedTrace, rows: Array, nearest: Array, own: Array) -> Array:
    total: Array = own.copy()
    deepest_first = rows[np.argsort(-linked.nesting.depth[rows], kind="stable")]
    for row in deepest_first.tolist():
        above = int(linked.nesting.parent[row])
        outer = int(nearest[above]) if above >= 0 else NONE
        if outer >= 0:
            total[outer] += total[row]
    return total


def _grouped(
    linked: LinkedTrace, rows: Array, own: Array, total: Array, backward: Array
) -> tuple[ModuleRow, ...]:
    host = linked.trace.host
    names, group = np.unique(host.name[rows], return_inverse=True)
    sums = [np.bincount(group, weights=values[rows]) / 1000 for values in (total, own, backward)]
    host_us = np.bincount(group, weights=host.end[rows] - host.start[rows]) / 1000
    counts = np.bincount(group)
    order = np.lexsort((-host_us, -sums[0]))
    return tuple(
        ModuleRow(
            name=linked.trace.names[int(names[index])].removeprefix("nn.Module: "),
            num=int(counts[index]),
            host_us=float(host_us[index]),
            device_us=float(sums[0][index]),
            device_self_us=float(sums[1][index]),
            backward_us=float(sums[2][index]),
        )
        for index in order.tolist()
    )
