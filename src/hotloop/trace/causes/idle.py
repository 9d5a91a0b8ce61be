"""Why the device was idle: every nanosecond of every gap goes to exactly one cause."""

import re
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum

import msgspec
import numpy as np

from hotloop.trace.causes.synchronizations import call_classes
from hotloop.trace.facts.intervals import NOTHING, Intervals, complement, intersect, subtract, union
from hotloop.trace.facts.steps import MARK
from hotloop.trace.link.call_names import CallClass
from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import Array
from hotloop.trace.read.kinds import Kind


class IdleCause(str, Enum):
    """What the device was waiting for."""

    PROFILER = "profiler"
    """The profiler's own overhead."""
    SYNCHRONIZATION = "synchronization"
    """The host waited for the device, or was on its way from such a wait to the next launch."""
    COPY = "copy"
    """The host was inside a copy call that blocks."""
    ALLOCATION = "allocation"
    """The host was inside a call that allocates or frees device or pinned memory."""
    DATA = "data"
    """The host waited for the DataLoader."""
    LAUNCH = "launch"
    """Launch-bound: the host dispatched operators, or a launch was on its way."""
    COLLECTIVE = "collective"
    """Launched work waited for a collective to end."""
    STREAM = "stream"
    """Launched work waited for another stream."""
    DEVICE = "device"
    """Launched work, or the host, waited for another device."""
    QUEUE = "queue"
    """Between two pieces of launched work on one stream: the device's own gap."""
    HOST = "host"
    """Host code outside of operators: Python, or anything the trace does not see."""
    UNKNOWN = "unknown"
    """The trace has nothing of the host at that time."""


class IdleSplit(msgspec.Struct, frozen=True):
    """Idle time by cause, in nanoseconds; the values add up to the idle time."""

    ns: dict[IdleCause, int]

    @property
    def total_ns(self) -> int:
        """All idle time."""
        return sum(self.ns.values())


_IN_DEVICE = re.compile(r"^Memcpy (?:DtoD|PtoP)")
_DATA = re.compile(r"^enumerate\(DataLoader\)|(?:^|/)torch/utils/data/dataloader\.py\(\d+\): __next__")


class IdleCauses:
    """Where each cause is at work, over the time of a whole trace; asked for any part of it.

    Args:
        linked: the trace, with all of its devices.
        device: whose idle time is asked for; None: the trace has one.
    """

    def __init__(self, linked: LinkedTrace, device: int | None = None) -> None:
        self._linked = linked
        self._device = device
        self._host = linked.trace.host
        self._classes = call_classes(linked.trace)
        self.data = self._data()
        self._at_work = list(self._in_order())

    def split(self, busy: Intervals, low: int, high: int) -> tuple[IdleSplit, dict[IdleCause, Intervals]]:
        """The idle time between two moments by cause.

        Args:
            busy: when the device was busy.
            low: where to begin.
            high: where to end.
        """
        rest = complement(busy, low, high)
        found: dict[IdleCause, Intervals] = {}
        times: dict[IdleCause, int] = dict.fromkeys(IdleCause, 0)
        for cause, at_work in self._at_work:
            part = intersect(rest, at_work)
            times[cause] += part.total
            found[cause] = _joined(found.get(cause, NOTHING), part)
            rest = subtract(rest, at_work)
        times[IdleCause.UNKNOWN] = rest.total
        found[IdleCause.UNKNOWN] = rest
        return IdleSplit(times), found

    def _in_order(self) -> Iterator[tuple[IdleCause, Intervals]]:
        """Causes from the most to the least specific; the first that is at work takes the time."""
        host = self._host
        waits = self._calls(CallClass.SYNC)
        pending = self._launched_and_not_started()
        yield IdleCause.PROFILER, _rows(host.start, host.end, host.kind == Kind.OVERHEAD)
        for cause in (IdleCause.DEVICE, IdleCause.COLLECTIVE, IdleCause.STREAM, IdleCause.QUEUE):
            yield cause, pending[cause]  # in its queue work waits for the device, whatever the host does
        yield IdleCause.DEVICE, intersect(waits, self._others_busy())
        yield IdleCause.SYNCHRONIZATION, waits
        yield IdleCause.COPY, self._blocking_copies()
        yield IdleCause.ALLOCATION, self._calls(CallClass.ALLOCATION)
        yield IdleCause.LAUNCH, pending[IdleCause.LAUNCH]
        yield IdleCause.DATA, self.data
        dispatching = _rows(
            host.start, host.end, np.isin(host.kind, (Kind.OPERATOR, Kind.CALL)) & ~self._named(MARK)
        )
        yield IdleCause.SYNCHRONIZATION, intersect(dispatching, self._restarts())
        yield IdleCause.LAUNCH, dispatching
        yield IdleCause.HOST, self._seen()

    def _calls(self, wanted: CallClass) -> Intervals:
        host = self._host
        return _rows(host.start, host.end, (host.kind == Kind.CALL) & (self._classes[host.name] == wanted))

    def _blocking_copies(self) -> Intervals:
        """Copy calls, except those within devices: they return as soon as the copy is queued."""
        host, device, call = self._host, self._linked.trace.device, self._linked.launches.call
        inside = np.array(
            [_IN_DEVICE.search(name) is not None for name in self._linked.trace.names] or [False]
        )
        queued = np.zeros(len(host), dtype=bool)
        queued[call[(call >= 0) & inside[device.name]]] = True
        copies = (host.kind == Kind.CALL) & (self._classes[host.name] == CallClass.COPY)
        return _rows(host.start, host.end, copies & ~queued)

    def _named(self, pattern: "re.Pattern[str]") -> Array:
        names = self._linked.trace.names
        return np.array([pattern.search(name) is not None for name in names] or [False])[self._host.name]

    def _data(self) -> Intervals:
        return _rows(self._host.start, self._host.end, self._named(_DATA))

    def _others_busy(self) -> Intervals:
        device = self._linked.trace.device
        if self._device is None:
            return NOTHING
        return _rows(device.start, device.end, device.device != self._device)

    def _launched_and_not_started(self) -> dict[IdleCause, Intervals]:
        """From each launch to the start of what it launched, by what came before on any device."""
        device, call = self._linked.trace.device, self._linked.launches.call
        here = np.ones(len(device), dtype=bool) if self._device is None else device.device == self._device
        own, order = np.flatnonzero(here), np.flatnonzero(here & (call >= 0))
        if not len(order):
            return defaultdict(lambda: NOTHING)
        launched = self._host.start[call[order]]
        start = device.start[order]
        before = _last_to_end(device.end, start)
        late = (before >= 0) & (launched < device.end[before])
        elsewhere = device.device[order] != device.device[before]
        same = device.stream[order] == device.stream[before]
        collective = device.is_communication[before]
        ended = _last_to_end(device.end[own], start)
        gap_from = np.maximum(launched, np.where(ended >= 0, device.end[own][ended], launched))
        rows = {
            IdleCause.DEVICE: late & elsewhere,
            IdleCause.COLLECTIVE: late & ~elsewhere & ~same & collective,
            IdleCause.STREAM: late & ~elsewhere & ~same & ~collective,
            IdleCause.QUEUE: late & ~elsewhere & same,
            IdleCause.LAUNCH: ~late,
        }
        return {cause: union(gap_from[chosen], start[chosen]) for cause, chosen in rows.items()}

    def _restarts(self) -> Intervals:
        """From the end of each wait to the first launch after it, on the waiting thread."""
        host = self._host
        calls = np.flatnonzero(host.kind == Kind.CALL)
        if not len(calls):
            return NOTHING
        order = calls[np.lexsort((host.start[calls], host.thread[calls]))]
        classes = self._classes[host.name[order]]
        launches = np.flatnonzero((classes == CallClass.LAUNCH) | (classes == CallClass.COPY))
        waits = np.flatnonzero(classes == CallClass.SYNC)
        if not len(launches) or not len(waits):
            return NOTHING
        after = np.searchsorted(launches, waits)
        waits, after = waits[after < len(launches)], after[after < len(launches)]
        target = order[launches[after]]
        waiting = order[waits]
        same = host.thread[target] == host.thread[waiting]
        return union(host.end[waiting][same], host.start[target][same])

    def _seen(self) -> Intervals:
        """From the first to the last host event: in between, what is not named was host code."""
        host = self._host
        if not len(host):
            return NOTHING
        return union(np.array([host.start.min()]), np.array([host.end.max()]))


def _rows(start: Int64, end: Int64, chosen: Array) -> Intervals:
    return union(start[chosen], end[chosen])


def _joined(a: Intervals, b: Intervals) -> Intervals:
    return union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end)))


def _last_to_end(end: Int64, start: Int64) -> Array:
    """For each start, the device event that ended last before it; -1: there is none."""
    by_end = np.argsort(end, kind="stable")
    index = np.searchsorted(end[by_end], start, side="right") - 1
    return np.where(index >= 0, by_end[np.maximum(index, 0)], -1)
