"""The tables of one trace: device time, idle causes, kernels, operators, modules, critical path, memory."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.quantities import byte_size
from hotloop.report.content.kernel_names import columns
from hotloop.report.document import Block, Note, Table
from hotloop.report.sections.trace.cells import (
    MAX_NAME,
    compact_shapes,
    milliseconds,
    share_of,
    table,
)
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.facts.memory import MemoryUse
from hotloop.trace.facts.operators import OperatorRow
from hotloop.trace.facts.timeline import DeviceTime

KERNEL_WIDTH = 38
"""Columns in which names of kernels are kept apart."""
CAUSES = {
    "profiler_us": "the profiler itself",
    "synchronization_us": "synchronization with the host",
    "copy_us": "blocking copies",
    "allocation_us": "memory allocation",
    "data_us": "waiting for data",
    "launch_us": "launch-bound: the host dispatches",
    "collective_us": "a collective",
    "stream_us": "another stream",
    "device_us": "another device",
    "queue_us": "between queued kernels",
    "host_us": "host code outside of operators",
    "unknown_us": "unknown",
}


def timeline(device: DeviceTime) -> Table:
    """What the device did with its time."""
    rows = (
        ("span", device.span_us),
        ("busy", device.busy_us),
        ("  compute", device.compute_us),
        ("  communication", device.communication_us),
        ("    not hidden by compute", device.exposed_communication_us),
        ("  memory copies and sets", device.memory_us),
        ("    not hidden by kernels", device.exposed_memory_us),
        ("idle", device.idle_us),
    )
    told = [(name, value) for name, value in rows if value or not name.startswith(" ")]
    return _parts("device", "of span", told, device.span_us)


def idle_causes(analysis: TraceAnalysis, span_us: float) -> Table:
    """What the device waited for."""
    found = sorted(analysis.idle_causes.items(), key=lambda item: -item[1])
    told = [(CAUSES.get(name, name), value) for name, value in found if value]
    return _parts("idle because of", "of span", told, span_us)


def _parts(name: str, of: str, rows: list[tuple[str, float]], whole_us: float) -> Table:
    return table(
        (name, "ms", of), [(part, milliseconds(value), share_of(value, whole_us)) for part, value in rows]
    )


def kernels(analysis: TraceAnalysis, top: int) -> Table:
    """The kernels that took longest."""
    rows = analysis.kernels[:top]
    names = columns([row.name[:MAX_NAME] for row in rows], KERNEL_WIDTH)
    return table(
        ("kernels", "runs", "ms", "mean us", "share"),
        [
            (name, f"{row.num:,}", milliseconds(row.total_us), f"{row.mean_us:,.1f}", f"{row.share:.1%}")
            for row, name in zip(rows, names, strict=True)
        ],
    )


def operators(analysis: TraceAnalysis, top: int) -> Iterator[Table]:
    """The operators that took longest, with the rate they reached."""
    rows = [_operator(row, analysis.device is not None) for row in analysis.operators[:top]]
    if rows:
        yield table(("operators", "calls", "device ms", "host ms", "TFLOP/s", "roof"), rows)


def _operator(row: OperatorRow, has_device: bool) -> tuple[str, ...]:
    """One row; empty where there is no device, or no peak to compare with."""
    name = row.name if not row.shapes else f"{row.name} {compact_shapes(row.shapes)}"
    return (
        name,
        f"{row.num:,}",
        milliseconds(row.device_us) if has_device else "",
        milliseconds(row.host_self_us),
        f"{row.tflops_per_s:,.1f}" if row.tflops_per_s is not None else "",
        f"{row.roof_share:.0%} {(row.bound or '')[:3]}" if row.roof_share is not None else "",
    )


def modules(analysis: TraceAnalysis, top: int) -> Iterator[Table]:
    """The modules that took longest."""
    has_device = analysis.device is not None
    rows = [
        (
            row.name,
            f"{row.num:,}",
            *(
                map(milliseconds, (row.device_us, row.device_self_us, row.backward_us))
                if has_device
                else ("",) * 3
            ),
            "" if has_device else milliseconds(row.host_us),
        )
        for row in analysis.modules
        if row.device_us or not has_device
    ]
    if rows:
        yield table(("modules", "calls", "device ms", "own ms", "backward ms", "forward ms"), rows[:top])


def critical_path(analysis: TraceAnalysis) -> Iterator[Block]:
    """What the step could not have done without."""
    path, missing = analysis.critical_path, analysis.critical_path_missing
    if path is not None:
        parts = [(f"  {part}", value) for part, value in path.parts_us.items()]
        whole = (f"all of {path.window}", path.total_us)
        yield _parts("critical path", "of path", [whole, *parts], path.total_us)
    elif missing and analysis.device is not None:
        yield Note(f"no critical path: {missing}", "dim")


def memory(use: MemoryUse) -> Note:
    """The peak of a device."""
    since = "" if use.absolute else " above the start of the trace"
    reserved = f", {byte_size(use.reserved_peak_bytes)} reserved" if use.reserved_peak_bytes else ""
    return Note(
        f"memory of {use.device}: peak {byte_size(use.peak_bytes)}{since} "
        f"at {milliseconds(use.peak_at_us)} ms{reserved}"
    )
