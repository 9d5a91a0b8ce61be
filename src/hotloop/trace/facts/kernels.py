"""Kernels by time: how often, how long, launched by what, how long queued."""

import msgspec
import numpy as np

from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.columns import NONE
from hotloop.trace.read.kinds import Kind


class KernelRow(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one kernel, or all copies of one kind."""

    name: str
    kind: str
    """compute, communication, memcpy or memset."""
    num: int
    total_us: float
    mean_us: float
    longest_us: float
    share: float
    """Of the durations of all device events."""
    operator: str | None
    """The operator that launched it most often; None: none is known."""
    queue_us: float | None
    """Median time from launch to start; None: no launch is known."""
    size_bytes: int | None = None
    """Moved by copies and memsets; None: not said."""


def kernel_rows(linked: LinkedTrace, limit: int | None = None) -> tuple[KernelRow, ...]:
    """Kernels and copies by total time, the longest first.

    Args:
        linked: the trace.
        limit: how many rows; None for all.
    """
    device = linked.trace.device
    if not len(device):
        return ()
    duration = device.end - device.start
    names, group = np.unique(device.name * 4 + _code(linked), return_inverse=True)
    totals = np.bincount(group, weights=duration)
    order = np.argsort(-totals, kind="stable")[:limit]
    by_group = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[by_group], np.arange(len(names) + 1))
    return tuple(
        _row(linked, int(names[index]), by_group[bounds[index] : bounds[index + 1]], int(duration.sum()))
        for index in order.tolist()
    )


_KINDS = ("compute", "communication", "memcpy", "memset")


def _code(linked: LinkedTrace) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    device = linked.trace.device
    code = np.where(device.is_communication, 1, 0)
    code[device.kind == Kind.MEMCPY] = 2
    code[device.kind == Kind.MEMSET] = 3
    return code.astype(np.int64)


def _row(
    linked: LinkedTrace, key: int, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", all_ns: int
) -> KernelRow:
    device, host = linked.trace.device, linked.trace.host
    duration = device.end[rows] - device.start[rows]
    total = int(duration.sum())
    calls = linked.launches.call[rows]
    launched = calls >= 0
    wait = device.start[rows][launched] - host.start[calls[launched]]
    sizes = device.size_bytes[rows]
    return KernelRow(
        name=linked.trace.names[key // 4],
        kind=_KINDS[key % 4],
        num=len(rows),
        total_us=total / 1000,
        mean_us=total / len(rows) / 1000,
        longest_us=int(duration.max()) / 1000,
        share=total / all_ns if all_ns else 0.0,
        operator=_most_frequent_operator(linked, rows),
        queue_us=float(np.median(wait)) / 1000 if len(wait) else None,
        size_bytes=int(sizes[sizes > 0].sum()) if bool(np.any(sizes >= 0)) and key % 4 > 1 else None,
    )


def _most_frequent_operator(
    linked: LinkedTrace, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> str | None:
    operators = linked.launches.operator[rows]
    operators = operators[operators != NONE]
    if not len(operators):
        return None
    names = linked.trace.host.name[operators]
    return linked.trace.names[int(np.bincount(names).argmax())]
