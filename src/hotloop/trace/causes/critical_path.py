"""The critical path: the longest chain of work that had to happen one after the other.

The graph has a node for the start and the end of every operator, call and piece of device work of a window.
Edges are what orders them: the call tree of each host thread (no time is counted between top-level
operators), launches, the order of a stream, and synchronizations, which cost nothing themselves. The same
definition is used by Holistic Trace Analysis, and the two agree to the microsecond on its own test traces.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import msgspec
import numpy as np

from hotloop.trace.link.linked_trace import LinkedTrace
from hotloop.trace.link.nesting import nest
from hotloop.trace.read.columns import NONE, Array
from hotloop.trace.read.kinds import Kind
from hotloop.trace.read.trace import HostEvents, Trace

_BLOCKING = frozenset(
    {
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize",
        "cudaEventSynchronize",
        "cudaEventQuery",
        "cudaMemcpy",
        "cudaMemcpyAsync",
        "hipDeviceSynchronize",
        "hipStreamSynchronize",
        "hipEventSynchronize",
        "hipMemcpy",
        "hipMemcpyWithStream",
    }
)
"""Calls whose length is somebody else's: the time inside them counts for what they wait for."""

MAX_EVENTS = 300_000
"""Above it the path is not computed unasked: a node costs about 2 us and 300 bytes."""


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """The longest path through a window."""

    window: str
    """The annotation that bounds the window; `trace` for all of it."""
    total_us: float
    parts_us: dict[str, float]
    """`host`, `compute`, `communication`, `memory`, `launch` (waiting for a launch to arrive) and `queue`
    (between pieces of work on one stream); they add up to `total_us`."""
    longest: tuple[tuple[str, float], ...]
    """Names with the most microseconds on the path."""


class NoCriticalPath(msgspec.Struct, frozen=True):
    """Why there is none."""

    reason: str


def critical_path(
    linked: LinkedTrace, annotation: str | None = None, instance: int = 0
) -> CriticalPath | NoCriticalPath:
    """The critical path of the trace, or of one run of an annotation.

    Args:
        linked: the trace.
        annotation: name of an annotation that bounds the window; None for the whole trace.
        instance: which run of the annotation, in order of time.
    """
    trace = linked.trace
    if not len(trace.syncs.start):
        return NoCriticalPath("the trace has no cuda_sync events, so what the host waited for is not known")
    window = _window(trace, annotation, instance)
    if window is None:
        return NoCriticalPath(f"there is no run {instance} of {annotation!r} in the trace")
    graph = _Graph()
    builder = _Builder(linked, graph, *window)
    if builder.num_events > MAX_EVENTS:
        return NoCriticalPath(f"the window has more than {MAX_EVENTS:,} events; name a shorter one")
    builder.build()
    return _longest(graph, annotation or "trace")


def _window(trace: Trace, annotation: str | None, instance: int) -> tuple[int, int] | None:
    host = trace.host
    if not len(host):
        return None
    if annotation is None:
        return int(host.start.min()), int(host.end.max())
    rows = np.flatnonzero((host.kind == Kind.ANNOTATION) & (host.name == trace.name_index(annotation)))
    rows = rows[np.argsort(host.start[rows], kind="stable")]
    return (int(host.start[rows[instance]]), int(host.end[rows[instance]])) if instance < len(rows) else None


@dataclass
class _Graph:
    """Nodes by number; each edge is stored at its end, with what it costs and what that time was."""

    times: list[int] = field(default_factory=list)
    into: list[list[tuple[int, int, str, str]]] = field(default_factory=list)

    def node(self, time: int) -> int:
        self.times.append(time)
        self.into.append([])
        return len(self.times) - 1

    def edge(self, source: int, target: int, part: str = "", name: str = "") -> None:
        """An edge; one without a part only orders and costs nothing."""
        weight = self.times[target] - self.times[source] if part else 0
        self.into[target].append((source, weight, part, name))


class _Builder:
    def __init__(self, linked: LinkedTrace, graph: _Graph, low: int, high: int) -> None:
        self._linked = linked
        self._trace = linked.trace
        self._graph = graph
        host = self._trace.host
        works = np.isin(host.kind, (Kind.OPERATOR, Kind.CALL))
        self._rows = np.flatnonzero(
            works & (host.start >= low) & (host.start <= high) & (host.end > host.start)
        )
        self._ends: dict[int, tuple[int, int]] = {}
        self._device_ends: dict[int, tuple[int, int]] = {}

    @property
    def num_events(self) -> int:
        """Operators and calls of the window."""
        return len(self._rows)

    def build(self) -> None:
        """Add all nodes and edges."""
        host = self._trace.host
        for row in self._rows.tolist():
            self._ends[row] = (self._graph.node(int(host.start[row])), self._graph.node(int(host.end[row])))
        self._add_host()
        self._add_device()

    def _add_host(self) -> None:
        host, rows = self._trace.host, self._rows
        tree = nest(
            HostEvents(host.kind[rows], host.name[rows], host.start[rows], host.end[rows], host.thread[rows])
        )
        by_thread: dict[int, list[int]] = defaultdict(list)
        for position in tree.order.tolist():
            by_thread[int(host.thread[rows[position]])].append(position)
        for positions in by_thread.values():
            self._add_thread(positions, tree.depth)

    def _add_thread(self, positions: list[int], depth: Array) -> None:
        """Walk through a call tree: into each event, out of it, on to the next."""
        graph = self._graph
        open_rows: list[int] = []
        last: int | None = None
        last_top: int | None = None
        for position in [*positions, None]:
            level = int(depth[position]) if position is not None else 0
            while len(open_rows) > level:
                row = open_rows.pop()
                end = self._ends[row][1]
                if last is not None:
                    waits = self._linked.name(row) in _BLOCKING
                    graph.edge(last, end, "" if waits else "host", self._linked.name(row))
                last, last_top = (end, last_top) if open_rows else (None, end)
            if position is None:
                return
            row = int(self._rows[position])
            start = self._ends[row][0]
            if not open_rows and last_top is not None:
                graph.edge(last_top, start)
            if last is not None:
                graph.edge(last, start, "host", self._linked.name(open_rows[-1]))
            open_rows.append(row)
            last = start

    def _add_device(self) -> None:
        device, call = self._trace.device, self._linked.launches.call
        launched = np.flatnonzero(call != NONE)
        order = launched[np.argsort(device.start[launched], kind="stable")]
        self._order = order
        inside = [row for row in order.tolist() if int(call[row]) in self._ends]
        for row in inside:
            self._device_ends[row] = (
                self._graph.node(int(device.start[row])),
                self._graph.node(int(device.end[row])),
            )
        idle = self._launched_into_idle_stream()
        waits = self._kernel_waits()
        syncs = self._trace.syncs
        # A wait is looked at when it ends: it may begin before the copy that it waits for.
        events = [(int(device.start[row]), 0, row) for row in inside]
        events += [(int(syncs.end[row]), 1, row) for row in range(len(syncs.start))]
        last: dict[tuple[int, int], int] = {}
        for _, is_sync, row in sorted(events):
            if is_sync:
                self._add_sync(row, last)
            else:
                self._add_work(row, last, bool(idle[row]), waits.get(row))

    def _launched_into_idle_stream(self) -> Array:
        """Per device event: nothing was queued on its stream when it was launched, nor was until it began."""
        device, call, host = self._trace.device, self._linked.launches.call, self._trace.host
        idle = np.zeros(len(device), dtype=bool)
        streams = defaultdict(list)
        for row in self._order.tolist():
            streams[int(device.device[row]), int(device.stream[row])].append(row)
        for rows in streams.values():
            launch = host.start[call[rows]]
            start = device.start[rows]
            queued_at_launch = np.searchsorted(np.sort(launch), launch, "right") - np.searchsorted(
                start, launch, "right"
            )
            queued_at_start = np.searchsorted(np.sort(launch), start, "right") - np.searchsorted(
                start, start, "right"
            )
            idle[rows] = (queued_at_launch == 1) & (queued_at_start == 0)
        return idle

    def _add_work(
        self, row: int, last: dict[tuple[int, int], int], idle: bool, waits_for: int | None
    ) -> None:
        graph, device = self._graph, self._trace.device
        start, end = self._device_ends[row]
        name = self._trace.names[int(device.name[row])]
        graph.edge(start, end, _part(self._trace, row), name)
        call = int(self._linked.launches.call[row])
        launched_ns = int(self._trace.host.start[call])
        stream = (int(device.device[row]), int(device.stream[row]))
        before = last.get(stream)
        before_ns = graph.times[before] if before is not None else None
        source = self._device_ends.get(waits_for, (0, None))[1] if waits_for is not None else None
        source_ns = graph.times[source] if source is not None else None
        if source is not None:
            graph.edge(source, start)
        if idle and _earlier(before_ns, launched_ns) and _earlier(source_ns, launched_ns):
            graph.edge(self._ends[call][0], start, "launch", name)
        elif before is not None and before_ns is not None and _earlier(source_ns, before_ns):
            graph.edge(before, start, "queue", name)
        last[stream] = end

    def _add_sync(self, row: int, last: dict[tuple[int, int], int]) -> None:
        """The call returns when what it waits for has ended."""
        syncs = self._trace.syncs
        kind = self._trace.names[int(syncs.name[row])]
        call = self._call_of(int(syncs.correlation[row]))
        if call not in self._ends:
            return
        if kind == "Context Sync":
            sources = [node for (device, _), node in last.items() if device == int(syncs.device[row])]
        elif kind == "Stream Sync":
            place = (int(syncs.device[row]), int(syncs.stream[row]))
            sources = [last[place]] if place in last else []
        elif kind == "Event Sync":
            recorded = self._recorded_work(row)
            sources = [self._device_ends[recorded][1]] if recorded in self._device_ends else []
        else:
            return
        for source in sources:
            self._graph.edge(source, self._ends[call][1])

    def _kernel_waits(self) -> dict[int, int]:
        """Device event to the one on another stream that it waits for, from `Stream Wait Event`s."""
        syncs, found = self._trace.syncs, {}
        wanted = self._trace.name_index("Stream Wait Event")
        for row in np.flatnonzero(syncs.name == wanted).tolist() if wanted >= 0 else ():
            source = self._recorded_work(row)
            target = self._next_launched(self._call_of(int(syncs.correlation[row])), int(syncs.stream[row]))
            if NONE not in (source, target):
                found[target] = source
        return found

    def _call_of(self, correlation: int) -> int:
        rows = self._trace.calls.row[self._trace.calls.correlation == correlation]
        return int(rows[0]) if correlation > 0 and len(rows) else NONE

    def _recorded_work(self, sync: int) -> int:
        """The last device event launched on the recording stream before the event was recorded."""
        syncs, host, device = self._trace.syncs, self._trace.host, self._trace.device
        record = self._call_of(int(syncs.wait_record[sync]))
        if record == NONE:
            return NONE
        rows = self._order[device.stream[self._order] == syncs.wait_stream[sync]]
        launched = host.start[self._linked.launches.call[rows]]
        earlier = np.flatnonzero(launched <= host.start[record])
        return int(rows[earlier[np.argmax(launched[earlier])]]) if len(earlier) else NONE

    def _next_launched(self, call: int, stream: int) -> int:
        """The first device event launched after a call, by its thread, on a stream."""
        if call == NONE:
            return NONE
        host, device = self._trace.host, self._trace.device
        rows = self._order[device.stream[self._order] == stream]
        launches = self._linked.launches.call[rows]
        later = np.flatnonzero(
            (host.start[launches] > host.start[call]) & (host.thread[launches] == host.thread[call])
        )
        return int(rows[later[np.argmin(host.start[launches[later]])]]) if len(later) else NONE


def _earlier(time: int | None, than: int) -> bool:
    return time is None or time < than


def _part(trace: Trace, row: int) -> str:
    if int(trace.device.kind[row]) != Kind.KERNEL:
        return "memory"
    return "communication" if bool(trace.device.is_communication[row]) else "compute"


def _longest(graph: _Graph, window: str) -> CriticalPath | NoCriticalPath:
    order = _topological(graph)
    if order is None:
        return NoCriticalPath("the events contradict each other: something waits for what comes after it")
    if not order:
        return NoCriticalPath("there are no operators in the window")
    distance = [0] * len(graph.times)
    chosen: list[tuple[int, int, str, str] | None] = [None] * len(graph.times)
    for node in order:
        for edge in graph.into[node]:
            if distance[edge[0]] + edge[1] > distance[node] or chosen[node] is None:
                distance[node], chosen[node] = distance[edge[0]] + edge[1], edge
    node = max(range(len(distance)), key=distance.__getitem__)
    total = distance[node]
    parts: Counter[str] = Counter()
    names: Counter[str] = Counter()
    while (step := chosen[node]) is not None:
        node, weight, part, name = step
        if part:
            parts[part] += weight
            names[name] += weight
    return CriticalPath(
        window=window,
        total_us=total / 1000,
        parts_us={part: ns / 1000 for part, ns in parts.most_common()},
        longest=tuple((name, ns / 1000) for name, ns in names.most_common(10)),
    )


def _topological(graph: _Graph) -> list[int] | None:
    """Nodes such that every edge leads forward; None: there is a cycle."""
    out: list[list[int]] = [[] for _ in graph.times]
    missing = [len(edges) for edges in graph.into]
    for node, edges in enumerate(graph.into):
        for edge in edges:
            out[edge[0]].append(node)
    order = [node for node, count in enumerate(missing) if not count]
    for node in order:
        for after in out[node]:
            missing[after] -= 1
            if not missing[after]:
                order.append(after)
    return order if len(order) == len(graph.times) else None
