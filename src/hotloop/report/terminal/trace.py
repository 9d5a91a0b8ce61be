"""Trace reports as text that fits 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown
from hotloop.model.outcome import Outcome
from hotloop.model.quantities import counted, duration
from hotloop.report.content.advice import advice
from hotloop.report.terminal.layout import next_steps
from hotloop.report.terminal.screen import Screen
from hotloop.report.terminal.trace_cells import bullet, share_of, shortened, tail_of
from hotloop.report.terminal.trace_ranks import overview, ranks_together
from hotloop.report.terminal.trace_tables import (
    CAUSES,
    critical_path,
    idle_causes,
    kernels,
    memory,
    modules,
    operators,
    timeline,
)
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.compare.budget import Verdict
from hotloop.trace.facts.coverage import TraceCoverage
from hotloop.trace.ranks.study import TraceReport

_FULL_AT_MOST = 3


def show_report(screen: Screen, report: TraceReport, top: int) -> None:
    """Every trace, then the ranks together; many ranks as one table."""
    if len(report.traces) > _FULL_AT_MOST:
        screen.show(overview(report.traces))
        for analysis in report.traces:
            screen.show(_serious_health(analysis))
    else:
        for analysis in report.traces:
            screen.show(_one_trace(analysis, top))
    if report.ranks is not None:
        screen.show(ranks_together(report.ranks, top))


_BUDGET = {
    Outcome.PASSED: Text("ok    ", style="green"),
    Outcome.FAILED: Text("broken", style="bold red"),
    Outcome.NOT_JUDGED: Text("?     ", style="bold yellow"),
}


def show_verdicts(screen: Screen, verdicts: Sequence[Verdict]) -> None:
    """Each budget and whether it was kept."""
    for verdict in verdicts:
        word = _BUDGET[verdict.outcome]
        screen.show(
            Text.assemble(
                "budget ", word, f" {verdict.gate.text}: {verdict.shown}  {shortened(verdict.file, 32)}"
            )
        )


def _one_trace(analysis: TraceAnalysis, top: int) -> RenderableType:
    parts: list[RenderableType] = [_heading(analysis), *_verdict(analysis), *_health_lines(analysis)]
    if analysis.coverage is not None:
        parts.append(_coverage(analysis.coverage))
    if analysis.device is not None:
        parts += [Text(), timeline(analysis.device), Text(), idle_causes(analysis)]
        parts += _findings(analysis.findings)
        parts += kernels(analysis, top)
    parts += operators(analysis, top)
    parts += modules(analysis, top)
    parts += critical_path(analysis)
    parts += memory(analysis)
    return Group(*parts, Text())


def _heading(analysis: TraceAnalysis) -> Text:
    rank = f", rank {analysis.rank}" if analysis.rank is not None else ""
    world = f" of {analysis.world_size}" if analysis.rank is not None and analysis.world_size else ""
    steps = f", {counted(len(analysis.steps), 'step')}" if analysis.steps else ""
    facts = f"{analysis.device_name or 'no device'}{rank}{world}, {analysis.num_events:,} events{steps}"
    return Text.assemble((shortened(analysis.file, 78), "bold"), "\n", shown(facts))


def _verdict(analysis: TraceAnalysis) -> list[RenderableType]:
    """What the device did, and what it mostly waited for, in a sentence."""
    device = analysis.device
    if device is None or not device.span_us:
        return []
    says = f"The device was idle for {share_of(device.idle_us, device.span_us)} of {duration(device.span_us / 1e6)}"
    cause = max(analysis.idle_causes, key=lambda name: analysis.idle_causes[name], default=None)
    if cause is None or not analysis.idle_causes[cause]:
        return [Text(f"{says}.", style="bold")]
    share = share_of(analysis.idle_causes[cause], device.span_us)
    return [Text(f"{says}; the largest cause, {share}: {CAUSES.get(cause, cause)}.", style="bold")]


def render_next(report: TraceReport, first: str) -> RenderableType:
    """What to type next.

    Args:
        report: what was found.
        first: the file of the first trace, as one types it from here.
    """
    found = next((finding.code for analysis in report.traces for finding in analysis.findings), None)
    explain = [("the manual of a finding", ["hotloop", "explain", found])] if found else []
    return next_steps(
        [*explain, ("what a change of the program did", ["hotloop", "trace", "diff", first, "AFTER"])]
    )


def _health_lines(analysis: TraceAnalysis) -> list[RenderableType]:
    styles = {"error": "bold red", "warning": "yellow", "info": "dim"}
    return [bullet(f"{note.severity}: {note.message}", styles[note.severity]) for note in analysis.health]


def _coverage(coverage: TraceCoverage) -> RenderableType:
    shares = (coverage.launch_share, coverage.operator_share, coverage.work_share)
    launch, operator, work = (f"{share:.0%}" for share in shares)
    return bullet(
        f"device time linked to the call that launched it: {launch}, to an operator: {operator}; "
        f"with known arithmetic: {work}",
        "dim",
    )


def _serious_health(analysis: TraceAnalysis) -> RenderableType:
    notes = [note for note in analysis.health if note.severity != "info"]
    who = f"rank {analysis.rank}" if analysis.rank is not None else shortened(analysis.file, 30)
    return Group(*(bullet(f"{who}: {note.message}", "yellow") for note in notes))


def _findings(findings: Sequence[Finding]) -> list[RenderableType]:
    if not findings:
        return []
    parts: list[RenderableType] = [Text(), Text("findings", style="bold")]
    for finding in findings:
        style = "yellow" if finding.severity is not Severity.INFO else ""
        cost = f", {duration(finding.cost_s)} a step" if finding.cost_s is not None else ""
        where = f" at {tail_of(finding.path, 50)}:{finding.line}" if finding.path else ""
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
