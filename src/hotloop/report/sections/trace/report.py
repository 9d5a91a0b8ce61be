"""One trace, or several and their ranks together: what the device waited for, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from hotloop.model.outcome import Outcome
from hotloop.model.quantities import counted, duration
from hotloop.report.document import Block, Document, Facts, Note, Section
from hotloop.report.sections.findings import finding
from hotloop.report.sections.trace.cells import share_of, shortened
from hotloop.report.sections.trace.ranks import devices, overview, ranks_together
from hotloop.report.sections.trace.tables import (
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
from hotloop.trace.facts.health import lacks_device_work
from hotloop.trace.ranks.study import TraceReport

LEAST = 0.0005
"""A share that would be told as 0.0%."""
FULL_AT_MOST = 3
"""Traces that are told in full; of more one row each."""
_BUDGET = {Outcome.PASSED: "ok", Outcome.FAILED: "broken", Outcome.NOT_JUDGED: "?"}


def trace_document(report: TraceReport, verdicts: Sequence[Verdict], top: int) -> Document:
    """Return every trace, the ranks together, and whether budgets were kept.

    Args:
        report: what was found.
        verdicts: on the budgets that were given.
        top: rows of a table.
    """
    sections = [*_traces(report.traces, top)]
    if report.ranks is not None:
        sections.append(Section(anchor="ranks", title="", blocks=tuple(ranks_together(report.ranks, top))))
    if verdicts:
        sections.append(Section(anchor="budgets", title="", blocks=tuple(map(_budget, verdicts))))
    return Document(
        title="",
        subtitle="",
        verdict=_verdict(report),
        good=None,
        tiles=(),
        sections=tuple(sections),
        footer="",
    )


def _verdict(report: TraceReport) -> str:
    if len(report.traces) == 1:
        return _idle(report.traces[0])
    num = counted(len(report.traces), "trace")
    first = next(iter(report.ranks.stragglers), None) if report.ranks is not None else None
    if first is None or not first.caused_us:
        return f"{num}."
    return f"{num}; rank {first.rank} made the others wait longest, {duration(first.caused_us / 1e6)}."


def _idle(analysis: TraceAnalysis) -> str:
    """What the device did, and what it mostly waited for, in a sentence."""
    device = analysis.device
    if device is None or not device.span_us:
        return _on_the_host(analysis)
    if lacks_device_work(analysis.health):
        most = f"{share_of(device.idle_us, device.span_us)} of {duration(device.span_us / 1e6)}"
        return f"Device work is missing from the trace: idle time is at most {most}."
    who = _busiest(analysis) or "The device"
    says = (
        f"{who} was idle for {share_of(device.idle_us, device.span_us)} of {duration(device.span_us / 1e6)}"
    )
    of_idle = ""
    if any(one.code == "exposed-communication" for one in analysis.findings):
        exposed = share_of(device.exposed_communication_us, device.span_us)
        says = f"{says}, and ran only communication for {exposed}"
        of_idle = " of idle time"
    cause = max(analysis.idle_causes, key=lambda name: analysis.idle_causes[name], default=None)
    if cause is None or analysis.idle_causes[cause] < LEAST * device.span_us:
        return f"{says}."
    share = share_of(analysis.idle_causes[cause], device.span_us)
    return f"{says}; the largest cause{of_idle}, {share}: {CAUSES.get(cause, cause)}."


def _on_the_host(analysis: TraceAnalysis) -> str:
    """What can be said of a trace without a device: its steps."""
    if not analysis.steps:
        return "The trace has no device time."
    step = duration(median(step.span_us for step in analysis.steps) / 1e6)
    share = analysis.data_share
    data = f"; {share:.1%} of all steps was in the DataLoader" if share is not None else ""
    return f"The trace has no device time; a step takes {step} (median){data}."


def _busiest(analysis: TraceAnalysis) -> str | None:
    """The device that the figures are of, where there are several."""
    if len(analysis.devices) < 2:
        return None
    number = next(one.device for one in analysis.devices if one.time == analysis.device)
    return f"Device {number}, the busiest of {len(analysis.devices)},"


def _traces(traces: Sequence[TraceAnalysis], top: int) -> Iterator[Section]:
    if len(traces) > FULL_AT_MOST:
        serious = [note for analysis in traces for note in _serious(analysis, f"{_who(analysis)}: ")]
        yield Section(anchor="overview", title="", blocks=(overview(traces), *serious))
        return
    for at, analysis in enumerate(traces):
        says = [Note(_idle(analysis), "strong")] if len(traces) > 1 else []
        yield Section(
            anchor=f"trace-{at}",
            title=shortened(analysis.file, 78),
            lead=_lead(analysis),
            blocks=(*says, *_one_trace(analysis, top)),
        )


def _who(analysis: TraceAnalysis) -> str:
    return f"rank {analysis.rank}" if analysis.rank is not None else shortened(analysis.file, 30)


def _lead(analysis: TraceAnalysis) -> str:
    rank = f", rank {analysis.rank}" if analysis.rank is not None else ""
    world = f" of {analysis.world_size}" if analysis.rank is not None and analysis.world_size else ""
    steps = f", {counted(len(analysis.steps), 'step')}" if analysis.steps else ""
    return f"{analysis.device_name or 'no device'}{rank}{world}, {analysis.num_events:,} events{steps}"


def _one_trace(analysis: TraceAnalysis, top: int) -> Iterator[Block]:
    yield from _serious(analysis)
    notes = [("info", note.message) for note in analysis.health if note.severity == "info"]
    linked = [("linked", _coverage(analysis.coverage))] if analysis.coverage is not None else []
    if notes or linked:
        yield Facts((*notes, *linked))
    if len(analysis.devices) > 1:
        yield devices(analysis)
        yield Note("What follows of idle time, steps and findings is of the busiest device.", "dim")
    if analysis.device is not None:
        yield timeline(analysis.device)
        if not lacks_device_work(analysis.health):
            yield idle_causes(analysis, analysis.device.span_us)
        yield from (finding(one, ("COMMAND",)) for one in analysis.findings)
        yield kernels(analysis, top)
    yield from operators(analysis, top)
    yield from modules(analysis, top)
    yield from critical_path(analysis)
    yield from map(memory, analysis.memory)


def _serious(analysis: TraceAnalysis, who: str = "") -> Iterator[Note]:
    """What has to be known before the figures are believed."""
    for note in analysis.health:
        if note.severity != "info":
            yield Note(f"{who or f'{note.severity}: '}{note.message}", "warning")


def _coverage(coverage: TraceCoverage) -> str:
    return (
        f"device time to the call that launched it: {coverage.launch_share:.0%}, to an operator: "
        f"{coverage.operator_share:.0%}; with known arithmetic: {coverage.work_share:.0%}"
    )


def _budget(verdict: Verdict) -> Note:
    tone = "" if verdict.outcome is Outcome.PASSED else "warning"
    file = shortened(verdict.file, 32)
    return Note(f"budget {_BUDGET[verdict.outcome]:<6} {verdict.gate.text}: {verdict.shown}  {file}", tone)
