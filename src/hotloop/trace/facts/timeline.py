"""What the device did when: busy, idle, compute, communication, copies, and what hides what."""

import msgspec
import numpy as np

from hotloop.trace.facts.intervals import Intervals, intersect, union
from hotloop.trace.read.columns import Array
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import DeviceEvents


class DeviceTime(msgspec.Struct, frozen=True, kw_only=True):
    """Device time in microseconds with nanosecond resolution.

    `busy` is the union of all device events, `idle` the rest of the span from the first start to the last
    end. Exposed communication is not covered by compute, exposed copies by no kernel at all.
    """

    num: int
    span_us: float
    busy_us: float
    idle_us: float
    compute_us: float
    communication_us: float
    memory_us: float
    overlap_us: float
    """Of communication with compute."""
    exposed_communication_us: float
    exposed_memory_us: float
    kernel_sum_us: float
    """The durations of all events added up, whatever overlaps."""


class DeviceSweep:
    """The interval sets of a selection of device events."""

    def __init__(self, device: DeviceEvents, chosen: Array | None = None) -> None:
        rows = np.arange(len(device)) if chosen is None else np.flatnonzero(chosen)
        kind, start, end = device.kind[rows], device.start[rows], device.end[rows]
        communicates = device.is_communication[rows]
        kernels = kind == Kind.KERNEL
        self.num = len(rows)
        self.low = int(start.min()) if len(rows) else 0
        self.high = int(end.max()) if len(rows) else 0
        self.busy = union(start, end)
        self.compute = _union_of(start, end, kernels & ~communicates)
        self.communication = _union_of(start, end, kernels & communicates)
        self.kernels = _union_of(start, end, kernels)
        self.memory = _union_of(start, end, ~kernels)
        self._sum = int(np.sum(end - start))

    def times(self) -> DeviceTime:
        """The lengths of the sets."""
        span = self.high - self.low
        overlap = intersect(self.communication, self.compute).total
        return DeviceTime(
            num=self.num,
            span_us=span / 1000,
            busy_us=self.busy.total / 1000,
            idle_us=(span - self.busy.total) / 1000,
            compute_us=self.compute.total / 1000,
            communication_us=self.communication.total / 1000,
            memory_us=self.memory.total / 1000,
            overlap_us=overlap / 1000,
            exposed_communication_us=(self.communication.total - overlap) / 1000,
            exposed_memory_us=(self.busy.total - self.kernels.total) / 1000,
            kernel_sum_us=self._sum / 1000,
        )


def _union_of(start: Array, end: Array, chosen: Array) -> Intervals:
    return union(start[chosen], end[chosen])
