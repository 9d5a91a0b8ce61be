"""The tables of one trace: device time, idle causes, kernels, operators, modules, critical path, memory."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.quantities import byte_size
from hotloop.report.terminal.kernel_names import columns
from hotloop.report.terminal.trace_cells import (
    MAX_NAME,
    NAME_WIDTH,
    add_row,
    bullet,
    compact_shapes,
    filled_table,
    milliseconds,
    share_of,
    shortened,
    table_of,
)
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.facts.operators import OperatorRow
from hotloop.trace.facts.timeline import DeviceTime

CAUSES = {
    "profiler_us": "the profiler itself",
    "synchronization_us": "synchronization with the host",
    "copy_us": "blocking copies",
    "allocation_us": "memory allocation",
    "data_us": "waiting for data",
    "launch_us": "launch-bound: the host dispatches",
    "collective_us": "a collective",
    "stream_us": "another stream",
    "queue_us": "between queued kernels",
    "host_us": "host code outside of operators",
    "unknown_us": "unknown",
}


def timeline(device: DeviceTime) -> Table:
    """What the device did with its time."""
    table = table_of("device", ("ms", "right"), ("of span", "right"))
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
    for name, value in rows:
        if value or not name.startswith(" "):
            add_row(table, name, milliseconds(value), share_of(value, device.span_us))
    return table


def idle_causes(analysis: TraceAnalysis) -> Table:
    """What the device waited for."""
    assert analysis.device is not None
    table = table_of("idle because of", ("ms", "right"), ("of span", "right"))
    for name, value in sorted(analysis.idle_causes.items(), key=lambda item: -item[1]):
        if value:
            add_row(
                table, CAUSES.get(name, name), milliseconds(value), share_of(value, analysis.device.span_us)
            )
    return table


def kernels(analysis: TraceAnalysis, top: int) -> list[RenderableType]:
    """The kernels that took longest."""
    table = table_of("kernels", ("runs", "right"), ("ms", "right"), ("mean us", "right"), ("share", "right"))
    rows = analysis.kernels[:top]
    names = columns([row.name[:MAX_NAME] for row in rows], NAME_WIDTH)
    for row, name in zip(rows, names, strict=True):
        add_row(
            table,
            name,
            f"{row.num:,}",
            milliseconds(row.total_us),
            f"{row.mean_us:,.1f}",
            f"{row.share:.1%}",
        )
    return [Text(), table]


def operators(analysis: TraceAnalysis, top: int) -> list[RenderableType]:
    """The operators that took longest, with the rate they reached."""
    if not analysis.operators:
        return []
    rows = [_operator(row, analysis.device is not None) for row in analysis.operators[:top]]
    return [Text(), filled_table("operators", ("calls", "device ms", "host ms", "TFLOP/s", "roof"), rows)]


def _operator(row: OperatorRow, has_device: bool) -> tuple[str, ...]:
    """One row; empty where there is no device, or no peak to compare with."""
    name = row.name if not row.shapes else f"{row.name} {compact_shapes(row.shapes)}"
    return (
        shortened(name, NAME_WIDTH),
        f"{row.num:,}",
        milliseconds(row.device_us) if has_device else "",
        milliseconds(row.host_self_us),
        f"{row.tflops_per_s:,.1f}" if row.tflops_per_s is not None else "",
        f"{row.roof_share:.0%} {(row.bound or '')[:3]}" if row.roof_share is not None else "",
    )


def modules(analysis: TraceAnalysis, top: int) -> list[RenderableType]:
    """The modules that took longest."""
    rows = [row for row in analysis.modules if row.device_us][:top]
    if not rows:
        return []
    table = table_of(
        "modules", ("calls", "right"), ("device ms", "right"), ("own ms", "right"), ("backward ms", "right")
    )
    for row in rows:
        add_row(
            table,
            shortened(row.name, NAME_WIDTH),
            f"{row.num:,}",
            milliseconds(row.device_us),
            milliseconds(row.device_self_us),
            milliseconds(row.backward_us),
        )
    return [Text(), table]


def critical_path(analysis: TraceAnalysis) -> list[RenderableType]:
    """What the step could not have done without."""
    path = analysis.critical_path
    if path is None:
        missing = analysis.critical_path_missing if analysis.device is not None else None
        return [Text(), bullet(f"no critical path: {missing}", "dim")] if missing else []
    table = table_of("critical path", ("ms", "right"), ("of path", "right"))
    add_row(table, f"all of {shortened(path.window, 60)}", milliseconds(path.total_us), "100.0%")
    for part, value in path.parts_us.items():
        add_row(table, f"  {part}", milliseconds(value), share_of(value, path.total_us))
    return [Text(), table]


def memory(analysis: TraceAnalysis) -> list[RenderableType]:
    """The peak of each device."""
    lines: list[RenderableType] = []
    for use in analysis.memory:
        since = "" if use.absolute else " above the start of the trace"
        reserved = f", {byte_size(use.reserved_peak_bytes)} reserved" if use.reserved_peak_bytes else ""
        lines.append(
            bullet(
                f"memory of {use.device}: peak {byte_size(use.peak_bytes)}{since} "
                f"at {milliseconds(use.peak_at_us)} ms{reserved}"
            )
        )
    return [Text(), *lines] if lines else []
