"""Trace reports as text that fits 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import counted, duration
from hotloop.report.terminal.findings import advice
from hotloop.report.terminal.kernel_names import columns
from hotloop.report.terminal.layout import next_steps
from hotloop.report.terminal.screen import Screen
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.compare.budget import Verdict
from hotloop.trace.facts.coverage import TraceCoverage
from hotloop.trace.facts.timeline import DeviceTime
from hotloop.trace.ranks.ranks import Ranks
from hotloop.trace.ranks.study import TraceReport

_CAUSES = {
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
_NAME_WIDTH = 38
MAX_NAME = 1000
"""Characters looked at: names of a megabyte were seen in damaged traces, and one screen shows 80 columns."""


def show_report(screen: Screen, report: TraceReport, top: int) -> None:
    """Every trace, then the ranks together; many ranks as one table."""
    if len(report.traces) > _FULL_AT_MOST:
        screen.show(_overview(report.traces))
        for analysis in report.traces:
            screen.show(_serious_health(analysis))
    else:
        for analysis in report.traces:
            screen.show(_one_trace(analysis, top))
    if report.ranks is not None:
        screen.show(_ranks(report.ranks, top))


_FULL_AT_MOST = 3


def show_verdicts(screen: Screen, verdicts: Sequence[Verdict]) -> None:
    """Each budget and whether it was kept."""
    for verdict in verdicts:
        word = Text("ok    ", style="green") if verdict.passed else Text("broken", style="bold red")
        screen.show(
            Text.assemble(
                "budget ", word, f" {verdict.gate.text}: {verdict.shown}  {_short(verdict.file, 32)}"
            )
        )


def _one_trace(analysis: TraceAnalysis, top: int) -> RenderableType:
    parts: list[RenderableType] = [_heading(analysis), *_verdict(analysis), *_health_lines(analysis)]
    if analysis.coverage is not None:
        parts.append(_coverage(analysis.coverage))
    if analysis.device is not None:
        parts += [Text(), _timeline(analysis.device), Text(), _idle(analysis)]
        parts += _findings(analysis.findings)
        parts += _kernels(analysis, top)
    parts += _operators(analysis, top)
    parts += _modules(analysis, top)
    parts += _path(analysis)
    parts += _memory(analysis)
    return Group(*parts, Text())


def _heading(analysis: TraceAnalysis) -> Text:
    rank = f", rank {analysis.rank}" if analysis.rank is not None else ""
    world = f" of {analysis.world_size}" if analysis.rank is not None and analysis.world_size else ""
    steps = f", {counted(len(analysis.steps), 'step')}" if analysis.steps else ""
    facts = f"{analysis.device_name or 'no device'}{rank}{world}, {analysis.num_events:,} events{steps}"
    return Text.assemble((_short(analysis.file, 78), "bold"), "\n", shown(facts))


def _verdict(analysis: TraceAnalysis) -> list[RenderableType]:
    """What the device did, and what it mostly waited for, in a sentence."""
    device = analysis.device
    if device is None or not device.span_us:
        return []
    says = f"The device was idle for {_share(device.idle_us, device.span_us)} of {duration(device.span_us / 1e6)}"
    cause = max(analysis.idle_causes, key=lambda name: analysis.idle_causes[name], default=None)
    if cause is None or not analysis.idle_causes[cause]:
        return [Text(f"{says}.", style="bold")]
    share = _share(analysis.idle_causes[cause], device.span_us)
    return [Text(f"{says}; the largest cause, {share}: {_CAUSES.get(cause, cause)}.", style="bold")]


def render_next(report: TraceReport) -> RenderableType:
    """What to type next."""
    found = next((finding.code for analysis in report.traces for finding in analysis.findings), None)
    explain = [("the manual of a finding", ["hotloop", "explain", found])] if found else []
    first = report.traces[0].file
    return next_steps(
        [*explain, ("what a change of the program did", ["hotloop", "trace", "diff", first, "AFTER"])]
    )


def _health_lines(analysis: TraceAnalysis) -> list[RenderableType]:
    styles = {"error": "bold red", "warning": "yellow", "info": "dim"}
    return [_bullet(f"{note.severity}: {note.message}", styles[note.severity]) for note in analysis.health]


def _coverage(coverage: TraceCoverage) -> RenderableType:
    shares = (coverage.launch_share, coverage.operator_share, coverage.work_share)
    launch, operator, work = (f"{share:.0%}" for share in shares)
    return _bullet(f"of device time, {launch} has a launch, {operator} an operator, {work} known work", "dim")


def _serious_health(analysis: TraceAnalysis) -> RenderableType:
    notes = [note for note in analysis.health if note.severity != "info"]
    who = f"rank {analysis.rank}" if analysis.rank is not None else _short(analysis.file, 30)
    return Group(*(_bullet(f"{who}: {note.message}", "yellow") for note in notes))


def _bullet(text: str, style: str = "") -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text("-", style=style), Text(shown(text), style=style))
    return grid


def _timeline(device: DeviceTime) -> Table:
    table = _table("device", ("ms", "right"), ("of span", "right"))
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
            _add(table, name, _ms(value), _share(value, device.span_us))
    return table


def _idle(analysis: TraceAnalysis) -> Table:
    assert analysis.device is not None
    table = _table("idle because of", ("ms", "right"), ("of span", "right"))
    for name, value in sorted(analysis.idle_causes.items(), key=lambda item: -item[1]):
        if value:
            _add(table, _CAUSES.get(name, name), _ms(value), _share(value, analysis.device.span_us))
    return table


def _findings(findings: Sequence[Finding]) -> list[RenderableType]:
    if not findings:
        return []
    parts: list[RenderableType] = [Text(), Text("findings", style="bold")]
    for finding in findings:
        style = "yellow" if finding.severity is not Severity.INFO else ""
        cost = f", {duration(finding.cost_s)} a step" if finding.cost_s is not None else ""
        where = f" at {_tail(finding.path, 50)}:{finding.line}" if finding.path else ""
        text = Text.assemble(
            (finding.code, f"bold {style}"),
            shown(f": {finding.title}{cost}"),
            "\n",
            shown(f"{finding.evidence}{where}"),
            "\n",
        )
        grid = Table.grid(padding=(0, 1))
        grid.add_row(Text("-"), text.append(advice(finding), style="dim"))
        parts.append(grid)
    return parts


def _kernels(analysis: TraceAnalysis, top: int) -> list[RenderableType]:
    table = _table("kernels", ("runs", "right"), ("ms", "right"), ("mean us", "right"), ("share", "right"))
    rows = analysis.kernels[:top]
    names = columns([row.name[:MAX_NAME] for row in rows], _NAME_WIDTH)
    for row, name in zip(rows, names, strict=True):
        _add(
            table,
            name,
            f"{row.num:,}",
            _ms(row.total_us),
            f"{row.mean_us:,.1f}",
            f"{row.share:.1%}",
        )
    return [Text(), table]


def _operators(analysis: TraceAnalysis, top: int) -> list[RenderableType]:
    if not analysis.operators:
        return []
    table = _table(
        "operators",
        ("calls", "right"),
        ("device", "right"),
        ("host", "right"),
        ("TFLOP/s", "right"),
        ("roof", "right"),
    )
    for row in analysis.operators[:top]:
        name = row.name if not row.shapes else f"{row.name} {_shapes(row.shapes)}"
        rate = f"{row.tflops_per_s:,.1f}" if row.tflops_per_s is not None else ""
        roof = f"{row.roof_share:.0%} {(row.bound or '')[:3]}" if row.roof_share is not None else ""
        _add(
            table,
            _short(name, _NAME_WIDTH),
            f"{row.num:,}",
            _ms(row.device_us),
            _ms(row.host_self_us),
            rate,
            roof,
        )
    return [Text(), table]


def _modules(analysis: TraceAnalysis, top: int) -> list[RenderableType]:
    rows = [row for row in analysis.modules if row.device_us][:top]
    if not rows:
        return []
    table = _table(
        "modules", ("calls", "right"), ("device", "right"), ("own", "right"), ("backward", "right")
    )
    for row in rows:
        _add(
            table,
            _short(row.name, _NAME_WIDTH),
            f"{row.num:,}",
            _ms(row.device_us),
            _ms(row.device_self_us),
            _ms(row.backward_us),
        )
    return [Text(), table]


def _path(analysis: TraceAnalysis) -> list[RenderableType]:
    path = analysis.critical_path
    if path is None:
        missing = analysis.critical_path_missing if analysis.device is not None else None
        return [Text(), _bullet(f"no critical path: {missing}", "dim")] if missing else []
    table = _table("critical path", ("ms", "right"), ("of path", "right"))
    _add(table, f"all of {_short(path.window, 60)}", _ms(path.total_us), "100.0%")
    for part, value in path.parts_us.items():
        _add(table, f"  {part}", _ms(value), _share(value, path.total_us))
    return [Text(), table]


def _memory(analysis: TraceAnalysis) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for use in analysis.memory:
        since = "" if use.absolute else " above the start of the trace"
        reserved = f", {use.reserved_peak_bytes / 1e9:,.2f} GB reserved" if use.reserved_peak_bytes else ""
        lines.append(
            _bullet(
                f"memory of {use.device}: peak {use.peak_bytes / 1e9:,.2f} GB{since} "
                f"at {_ms(use.peak_at_us)} ms{reserved}"
            )
        )
    return [Text(), *lines] if lines else []


def _overview(traces: Sequence[TraceAnalysis]) -> Table:
    table = _table(
        "trace",
        *((name, "right") for name in ("rank", "span ms", "busy", "idle", "compute", "comm", "exposed")),
    )
    for analysis in traces:
        rank = "" if analysis.rank is None else str(analysis.rank)
        device = analysis.device
        if device is None:
            _add(table, _short(analysis.file, 26), rank, "no device events", "", "", "", "", "")
            continue
        shares = (
            device.busy_us,
            device.idle_us,
            device.compute_us,
            device.communication_us,
            device.exposed_communication_us,
        )
        _add(
            table,
            _short(analysis.file, 26),
            rank,
            _ms(device.span_us),
            *(_share(part, device.span_us) for part in shares),
        )
    return table


def _ranks(ranks: Ranks, top: int) -> RenderableType:
    if not ranks.num_matched:
        return _bullet("The ranks share no collective that could be matched; nothing is said of stragglers.")
    table = _table(
        "rank", *((name, "right") for name in ("made others wait ms", "waited ms", "came last", "clock us"))
    )
    for one in ranks.stragglers[:top]:
        _add(
            table,
            str(one.rank),
            _ms(one.caused_us),
            _ms(one.wait_us),
            f"{one.num_last} of {ranks.num_matched}",
            f"{one.offset_us:+,.1f}",
        )
    waits = _table(
        "longest waits",
        *((name, "right") for name in ("late rank", "all wait ms", "longest ms", "transfer ms")),
    )
    for wait in ranks.collectives[:top]:
        _add(
            waits,
            f"{_short(wait.name, 26)} #{wait.index}",
            str(wait.late_rank),
            _ms(wait.wait_us),
            _ms(wait.longest_wait_us),
            _ms(wait.shortest_us),
        )
    lines: list[RenderableType] = [Text(), table, Text(), waits]
    if ranks.imbalance is not None:
        lines.append(_bullet(f"compute imbalance: the longest is {ranks.imbalance:.1%} above the mean"))
    if ranks.num_unmatched:
        lines.append(
            _bullet(f"{ranks.num_unmatched} collectives are not on all ranks and were left out", "yellow")
        )
    return Group(*lines)


def _table(first: str, *columns: tuple[str, str]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    return table


def _add(table: Table, *cells: str) -> None:
    """A row whose brackets are brackets, not styles."""
    table.add_row(*(Text(shown(cell)) for cell in cells))


def _shapes(text: str) -> str:
    return text.replace("[]", "").replace(",,", "").replace(",]", "]").replace(" ", "")


def _short(text: str, width: int) -> str:
    text = shown(text[:MAX_NAME])
    return text if len(text) <= width else text[: width - 1] + "…"


def _tail(text: str, width: int) -> str:
    text = shown(text[-MAX_NAME:])
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:,.2f}" if microseconds < 1e6 else f"{microseconds / 1000:,.0f}"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else ""
