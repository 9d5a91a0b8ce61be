"""Everything that is said about one trace."""

import msgspec
import numpy as np

from hotloop.model.finding import Finding
from hotloop.trace.causes.critical_path import CriticalPath, NoCriticalPath, critical_path
from hotloop.trace.causes.device_work import DeviceTimeline, StepTimeline, device_work
from hotloop.trace.causes.idle import IdleCause
from hotloop.trace.causes.patterns import Seen, find_patterns
from hotloop.trace.causes.synchronizations import SyncSite, find_syncs
from hotloop.trace.facts.coverage import TraceCoverage, trace_coverage
from hotloop.trace.facts.health import HealthNote, health_notes, lacks_device_work
from hotloop.trace.facts.kernels import KernelRow, kernel_rows
from hotloop.trace.facts.memory import MemoryUse, memory_use
from hotloop.trace.facts.modules import ModuleRow, module_rows
from hotloop.trace.facts.operators import OperatorRow, operator_rows
from hotloop.trace.facts.peaks import peak_of
from hotloop.trace.facts.steps import find_steps
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
    """Of the device that was busy longest, as are `idle_causes`, `data_share`, `steps` and `findings`; None: there are
    no device events."""
    devices: tuple[DeviceTimeline, ...]
    """Of each device that has events."""
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
    devices = [device_work(linked, device) for device in np.unique(trace.device.device).tolist()]
    main = max(devices, key=lambda one: one.sweep.busy.total, default=None) or device_work(linked, 0)
    timelines = tuple(one.timeline for one in devices if one.timeline is not None)
    timeline = main.timeline
    syncs = find_syncs(linked, main.idle_when[IdleCause.SYNCHRONIZATION])
    kernels = kernel_rows(linked)
    name = device_name(trace, main.device)
    operators = operator_rows(linked, peak_of(name) if name else None)
    health = health_notes(linked, steps)
    is_whole = main.linked is linked
    seen = Seen(
        main.linked,
        steps,
        main.sweep.times(),
        main.idle,
        syncs,
        kernels if is_whole else kernel_rows(main.linked),
        operators if is_whole else operator_rows(main.linked, None),
        knows_idle=not lacks_device_work(health),
    )
    path = critical_path(linked, window)
    return TraceAnalysis(
        file=trace.label,
        rank=trace.metadata.rank,
        world_size=trace.metadata.world_size,
        device_name=name,
        num_events=trace.tally.num_events,
        num_bytes=trace.num_bytes,
        health=health,
        device=timeline.time if timeline else None,
        devices=timelines,
        coverage=trace_coverage(linked, operators),
        idle_causes=timeline.idle_causes if timeline else {},
        data_share=main.data_share(steps),
        streams=_stream_times(trace),
        steps=main.steps(steps),
        syncs=syncs,
        kernels=kernels[:limit],
        operators=operators[:limit],
        modules=module_rows(linked, limit),
        memory=memory_use(trace),
        findings=find_patterns(seen),
        critical_path=path if isinstance(path, CriticalPath) else None,
        critical_path_missing=path.reason if isinstance(path, NoCriticalPath) else None,
    )


def device_name(trace: Trace, used: int) -> str | None:
    """The name of a device, or else of the first that the trace names; None: it names none."""
    names = {device.id: device.name for device in trace.metadata.devices}
    return names.get(used) or next(iter(names.values()), None)


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


__all__ = ["IdleCause", "TraceAnalysis", "analyze_linked", "analyze_trace"]
