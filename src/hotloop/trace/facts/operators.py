"""Operators by the device time they launch and the host time they take, and how well they use the device."""

import re

import msgspec
import numpy as np

from hotloop.trace.facts.peaks import Peak, tera_flops
from hotloop.trace.facts.tensor_cores import convolution_note, tensor_core_note, tf32_rows
from hotloop.trace.facts.work import Work, parse_arguments, work_of
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.kinds import Kind

_TRANSFER = re.compile(r"^Memcpy (?:HtoD|DtoH)")


class OperatorRow(msgspec.Struct, frozen=True, kw_only=True):
    """All calls of one operator with one set of shapes."""

    name: str
    shapes: str | None
    """Input shapes as the profiler wrote them; None: not recorded."""
    types: str | None
    num: int
    host_us: float
    """Inside its calls, what they call included."""
    host_self_us: float
    device_us: float
    """Of the work that it launched itself, not what it calls."""
    num_kernels: int
    transfer_us: float = 0.0
    """Of `device_us`, copies between host and device."""
    kind: str | None = None
    """gemm, convolution, attention, normalization or triton; None: its work is not known from its shapes."""
    flops: int | None = None
    """Of one call."""
    size_bytes: int | None = None
    """The least that one call has to move."""
    tflops_per_s: float | None = None
    gb_per_s: float | None = None
    bound: str | None = None
    """compute or memory, by the roofline of the named device; None: the device, or its rate in this type, is not in
    the table."""
    roof_share: float | None = None
    """Achieved over attainable; above 1 says that the data came from a cache."""
    tensor_cores: str | None = None
    """Why matrix units could not be used or not fully; None: nothing speaks against it, or no matmul."""


def operator_rows(
    linked: LinkedTrace, peak: Peak | None, limit: int | None = None
) -> tuple[OperatorRow, ...]:
    """Operators by device time, then by host time, the largest first."""
    trace = linked.trace
    host, table = trace.host, trace.operators
    chosen = np.flatnonzero(host.kind[table.row] == Kind.OPERATOR)
    if not len(chosen):
        return ()
    rows = table.row[chosen]
    device_ns, num_kernels = device_time_by_row(linked)
    own = linked.nesting.self_time(host)
    key = (host.name[rows].astype(np.int64) << 32) + (table.dims[chosen] + 1)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    device_totals = np.bincount(group, weights=device_ns[rows])
    host_totals = np.bincount(group, weights=host.end[rows] - host.start[rows])
    own_totals = np.bincount(group, weights=own[rows])
    kernels = np.bincount(group, weights=num_kernels[rows])
    transfers = np.bincount(group, weights=_transfers_by_row(linked)[rows])
    counts = np.bincount(group)
    tf32 = np.bincount(group, weights=tf32_rows(linked)[rows]) > 0
    order = np.lexsort((-own_totals, -device_totals))[:limit]
    found = []
    for index in order.tolist():
        argument = int(chosen[first[index]])
        row = OperatorRow(
            name=linked.name(int(table.row[argument])),
            shapes=_text(trace.texts, int(table.dims[argument])),
            types=_text(trace.texts, int(table.types[argument])),
            num=int(counts[index]),
            host_us=float(host_totals[index]) / 1000,
            host_self_us=float(own_totals[index]) / 1000,
            device_us=float(device_totals[index]) / 1000,
            num_kernels=int(kernels[index]),
            transfer_us=float(transfers[index]) / 1000,
        )
        found.append(_with_work(row, _work(linked, row.name, argument), peak, bool(tf32[index])))
    return tuple(found)


def device_time_by_row(linked: LinkedTrace) -> tuple[Int64, Int64]:
    """Nanoseconds and number of device events launched directly under each host row."""
    known = linked.launches.operator != NONE
    return _by_row(linked, known), np.bincount(
        linked.launches.operator[known], minlength=len(linked.trace.host)
    )


def _transfers_by_row(linked: LinkedTrace) -> Int64:
    names = linked.trace.names
    crosses = np.array([_TRANSFER.match(name) is not None for name in names] or [False])
    return _by_row(linked, (linked.launches.operator != NONE) & crosses[linked.trace.device.name])


def _by_row(linked: LinkedTrace, chosen: Array) -> Int64:
    device, operator = linked.trace.device, linked.launches.operator
    duration = (device.end - device.start)[chosen].astype(np.float64)
    return np.bincount(operator[chosen], weights=duration, minlength=len(linked.trace.host)).astype(np.int64)


def _text(texts: list[bytes], index: int) -> str | None:
    return "".join(texts[index].decode("utf-8", errors="replace").split()) if index >= 0 else None


def _work(linked: LinkedTrace, name: str, argument: int) -> Work | None:
    table, texts = linked.trace.operators, linked.trace.texts
    dims, types, concrete = (int(column[argument]) for column in (table.dims, table.types, table.concrete))
    if dims < 0:
        return None
    arguments = parse_arguments(
        texts[dims], texts[types] if types >= 0 else None, texts[concrete] if concrete >= 0 else None
    )
    return work_of(name, arguments) if arguments else None


def _with_work(row: OperatorRow, work: Work | None, peak: Peak | None, tf32: bool) -> OperatorRow:
    if row.device_us <= 0:
        return row
    if work is None:
        note = convolution_note(row.types or "", tf32) if "convolution" in row.name else None
        return msgspec.structs.replace(row, tensor_cores=note)
    seconds = row.device_us / 1e6 / row.num
    flops_rate = work.flops / seconds / 1e12 if work.flops is not None else None
    bytes_rate = work.size_bytes / seconds / 1e9
    bound, share = _roof(work, seconds, peak, tf32) if peak else (None, None)
    return msgspec.structs.replace(
        row,
        kind=work.kind,
        flops=work.flops,
        size_bytes=work.size_bytes,
        tflops_per_s=flops_rate,
        gb_per_s=bytes_rate,
        bound=bound,
        roof_share=share,
        tensor_cores=tensor_core_note(work, tf32),
    )


def _roof(work: Work, seconds: float, peak: Peak, tf32: bool) -> tuple[str, float] | tuple[None, None]:
    """The roofline model: the longer of arithmetic at its peak and traffic at its peak bounds the time."""
    rate = tera_flops(peak, work.dtype, tf32)
    if work.flops and rate is None:
        return None, None
    compute = work.flops / (rate * 1e12) if work.flops and rate else 0.0
    memory = work.size_bytes / (peak.bandwidth * 1e12)
    return ("compute" if compute > memory else "memory"), max(compute, memory) / seconds
