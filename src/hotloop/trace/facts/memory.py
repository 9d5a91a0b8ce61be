"""Allocated memory over time and its peak, from the allocator's events."""

import msgspec
import numpy as np

from hotloop.trace.read.columns import Array
from hotloop.trace.read.trace import Trace

_CPU = 0
"""`c10::DeviceType::CPU`; every accelerator has another number."""


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one device's allocator gave out during the trace."""

    device: str
    num_events: int
    peak_bytes: int
    peak_at_us: float
    """After the first event of the trace's host threads."""
    absolute: bool
    """The allocator's own total was recorded; otherwise the peak counts from the start of the trace."""
    reserved_peak_bytes: int | None
    churn_bytes: int
    """All allocations added up."""


def memory_use(trace: Trace) -> tuple[MemoryUse, ...]:
    """One entry per device with allocator events, devices first, then the CPU."""
    memory = trace.memory
    if not len(memory.start):
        return ()
    origin = int(trace.host.start.min()) if len(trace.host) else int(memory.start.min())
    key = memory.device_type * 4096 + np.maximum(memory.device_id, 0)
    return tuple(
        _of_device(trace, np.flatnonzero(key == value), origin)
        for value in sorted(set(key.tolist()), reverse=True)
    )


def memory_timeline(trace: Trace, rows: Array) -> tuple[Array, Array, bool]:
    """Times in ns, bytes allocated then, and whether they are the allocator's own totals.

    On the CPU torch counts from the first profile on, without the blocks that it had not seen: no total of anything.
    """
    memory = trace.memory
    order = rows[np.argsort(memory.start[rows], kind="stable")]
    if np.all(memory.allocated[order] >= 0) and np.all(memory.device_type[order] != _CPU):
        return memory.start[order], memory.allocated[order], True
    return memory.start[order], np.cumsum(memory.moved_bytes[order]), False


def _of_device(trace: Trace, rows: Array, origin: int) -> MemoryUse:
    memory = trace.memory
    times, allocated, absolute = memory_timeline(trace, rows)
    top = int(np.argmax(allocated))
    reserved = int(memory.reserved[rows].max())
    is_cpu = int(memory.device_type[rows[0]]) == _CPU
    moved = memory.moved_bytes[rows]
    return MemoryUse(
        device="cpu" if is_cpu else f"device {max(int(memory.device_id[rows[0]]), 0)}",
        num_events=len(rows),
        peak_bytes=int(allocated[top]),
        peak_at_us=(int(times[top]) - origin) / 1000,
        absolute=absolute,
        reserved_peak_bytes=reserved if reserved >= 0 and not is_cpu else None,
        churn_bytes=int(moved[moved > 0].sum()),
    )
