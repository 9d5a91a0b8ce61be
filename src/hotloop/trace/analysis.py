"""Everything that is said about one trace."""

import msgspec
import numpy as np

from hotloop.model.finding import Finding
from hotloop.trace.causes.critical_path import CriticalPath, NoCriticalPath, critical_path
from hotloop.trace.causes.idle import IdleCause, IdleCauses, IdleSplit
from hotloop.trace.causes.patterns import Seen, find_patterns
from hotloop.trace.causes.synchronizations import SyncSite, find_syncs
from hotloop.trace.facts.coverage import TraceCoverage, trace_coverage
from hotloop.trace.facts.health import HealthNote, health_notes
from hotloop.trace.facts.intervals import clip, subtract
from hotloop.trace.facts.kernels import KernelRow, kernel_rows
from hotloop.trace.facts.memory import MemoryUse, memory_use
from hotloop.trace.facts.modules import ModuleRow, module_rows
from hotloop.trace.facts.operators import OperatorRow, operator_rows
from hotloop.trace.facts.peaks import peak_of
from hotloop.trace.facts.steps import Step, find_steps
from hotloop.trace.facts.timeline import DeviceSweep, DeviceTime
from hotloop.trace.link.linked_trace import LinkedTrace, link_trace
from hotloop.trace.read.columns import Array
from hotloop.trace.read.trace import Trace

SCHEMA = 1


class StreamTime(msgspec.Struct, frozen=True, kw_only=True):
    """The timeline of one stream of one device."""

    device: int
    stream: int
    time: DeviceTime


class StepTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """One step by the profiler's marks; the device's work is cut at the step's ends on the host."""

    number: int
    span_us: float
    busy_us: float
    idle_us: float
    data_us: float
    """Host time inside the DataLoader."""
    idle_causes: dict[str, float]


class TraceAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """What one trace says; names carry units, None is not known."""

    file: str
    rank: int | None
    world_size: int | None
    device_name: str | None
    num_events: int
    num_bytes: int
    health: tuple[HealthNote, ...]
    device: DeviceTime | None
    """None: there are no device events."""
    coverage: TraceCoverage | None
    """What share of device time the figures below rest on; None: there is none."""
    idle_causes: dict[str, float]
    """`<cause>_us`; they add up to `device.idle_us`."""
    data_share: float | None
    """Inside the DataLoader while the device was idle, of all steps; None: no steps or no DataLoader were recorded."""
    streams: tuple[StreamTime, ...]
    steps: tuple[StepTimeline, ...]
    syncs: tuple[SyncSite, ...]
    kernels: tuple[KernelRow, ...]
    operators: tuple[OperatorRow, ...]
    modules: tuple[ModuleRow, ...]
    memory: tuple[MemoryUse, ...]
    findings: tuple[Finding, ...]
    critical_path: CriticalPath | None
    critical_path_missing: str | None
    """Why there is no critical path; None: there is one."""
    schema: int = SCHEMA


def analyze_trace(trace: Trace, limit: int | None = None, window: str | None = None) -> TraceAnalysis:
    """Analyze one trace.

    Args:
        trace: as read.
        limit: rows kept of kernels, operators and modules; None for all.
        window: the annotation whose first run bounds the critical path; None for the whole trace.
    """
    return analyze_linked(link_trace(trace), limit, window)


def analyze_linked(linked: LinkedTrace, limit: int | None = None, window: str | None = None) -> TraceAnalysis:
    """The same for a trace whose call tree is worked out already."""
    trace = linked.trace
    steps = find_steps(trace)
    sweep = DeviceSweep(trace.device)
    causes = IdleCauses(linked)
    idle, _ = causes.split(sweep.busy, sweep.low, sweep.high)
    syncs = find_syncs(linked)
    kernels = kernel_rows(linked)
    name = device_name(trace)
    operators = operator_rows(linked, peak_of(name) if name else None)
    device = sweep.times()
    seen = Seen(linked, steps, device, idle, syncs, kernels, operators)
    timelines = _step_timelines(sweep, causes, steps)
    path = critical_path(linked, window)
    return TraceAnalysis(
        file=trace.label,
        rank=trace.metadata.rank,
        world_size=trace.metadata.world_size,
        device_name=name,
        num_events=trace.tally.num_events,
        num_bytes=trace.num_bytes,
        health=health_notes(linked, steps),
        device=device if sweep.num else None,
        coverage=trace_coverage(linked, operators),
        idle_causes=_named(idle) if sweep.num else {},
        data_share=_data_share(sweep, causes, steps),
        streams=_stream_times(trace),
        steps=timelines,
        syncs=syncs,
        kernels=kernels[:limit],
        operators=operators[:limit],
        modules=module_rows(linked, limit),
        memory=memory_use(trace),
        findings=find_patterns(seen),
        critical_path=path if isinstance(path, CriticalPath) else None,
        critical_path_missing=path.reason if isinstance(path, NoCriticalPath) else None,
    )


def device_name(trace: Trace) -> str | None:
    """The name of the device that most events ran on; None: the trace does not say."""
    names = {device.id: device.name for device in trace.metadata.devices}
    if len(trace.device):
        ids, counts = np.unique(trace.device.device, return_counts=True)
        used = names.get(int(ids[counts.argmax()]))
        if used:
            return used
    return next(iter(names.values()), None)


def _named(idle: IdleSplit) -> dict[str, float]:
    return {f"{cause.value}_us": ns / 1000 for cause, ns in idle.ns.items()}


def _stream_times(trace: Trace) -> tuple[StreamTime, ...]:
    device = trace.device
    pairs = sorted(set(zip(device.device.tolist(), device.stream.tolist(), strict=True)))
    return tuple(
        StreamTime(device=which, stream=stream, time=DeviceSweep(device, _on(trace, which, stream)).times())
        for which, stream in pairs
    )


def _on(trace: Trace, device: int, stream: int) -> Array:
    chosen: Array = (trace.device.device == device) & (trace.device.stream == stream)
    return chosen


def _step_timelines(
    sweep: DeviceSweep, causes: IdleCauses, steps: tuple[Step, ...]
) -> tuple[StepTimeline, ...]:
    found = []
    for step in steps:
        busy = clip(sweep.busy, step.start_ns, step.end_ns)
        idle, _ = causes.split(busy, step.start_ns, step.end_ns)
        span = step.end_ns - step.start_ns
        found.append(
            StepTimeline(
                number=step.number,
                span_us=span / 1000,
                busy_us=busy.total / 1000,
                idle_us=(span - busy.total) / 1000,
                data_us=clip(causes.data, step.start_ns, step.end_ns).total / 1000,
                idle_causes=_named(idle),
            )
        )
    return tuple(found)


def _data_share(sweep: DeviceSweep, causes: IdleCauses, steps: tuple[Step, ...]) -> float | None:
    """DataLoader time that no device work hides, over all steps and the device work they left behind."""
    if not steps or not len(causes.data):
        return None
    low, high = steps[0].start_ns, max(steps[-1].end_ns, sweep.high if sweep.num else steps[-1].end_ns)
    data = subtract(clip(causes.data, low, high), sweep.busy)
    return data.total / (high - low) if high > low else None


__all__ = ["IdleCause", "TraceAnalysis", "analyze_linked", "analyze_trace"]
