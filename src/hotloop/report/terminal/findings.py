"""A Diagnosis as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hotloop.model.diagnosis import Diagnosis
from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown
from hotloop.model.observation import NO_TIME, Observation, Phase
from hotloop.model.quantities import counted, duration, listed
from hotloop.report.content.places import place
from hotloop.report.content.worth import SHOWN, cost, gain, worth_showing
from hotloop.report.terminal.busy_machine import busy_machine
from hotloop.report.terminal.ceilings import ceilings
from hotloop.report.terminal.inference import batches
from hotloop.report.terminal.layout import WIDTH, facts, next_steps, paste
from hotloop.stats.quietness import is_too_busy

CEILINGS = ("ceilings and predictions",)
_STYLES = {Severity.INFO: "cyan", Severity.WARNING: "bold yellow", Severity.ERROR: "bold red"}


def render(diagnosis: Diagnosis, *, verbose: bool = False) -> RenderableType:
    """Return the whole diagnosis, ready to print.

    Args:
        diagnosis: what to show.
        verbose: list all findings, and the rules that could not judge.
    """
    return Group(*_parts(diagnosis, verbose=verbose))


def render_next(diagnosis: Diagnosis) -> RenderableType:
    """Return what to type next: a program that fails cannot be tuned."""
    seen = diagnosis.observation
    if seen.exit_code:
        steps = [("your program failed: run it by itself and correct it first", list(seen.command))]
    elif seen.step is None:
        steps = [("observe it again", ["hotloop", "observe", *seen.command])]
    else:
        steps = [("try what helps, and prove it", ["hotloop", "tune", *seen.command])]
    first = next(iter(worth_showing(diagnosis.findings, seen.foreign_share)), None)
    if first is not None:
        steps.append(("the manual of a finding", ["hotloop", "explain", first.code]))
    return next_steps(steps)


def _parts(diagnosis: Diagnosis, *, verbose: bool) -> Iterator[RenderableType]:
    if diagnosis.bottleneck is None:
        why = diagnosis.observation.why_no_step
        yield Text(shown(f"No step was measured{f': {why}' if why else ''}."), style="bold")
        return
    seen = diagnosis.observation
    yield from busy_machine(seen.foreign_share)
    busy = is_too_busy(seen.foreign_share)
    yield Text(f"{diagnosis.bottleneck.sentence}{' (as measured here)' * busy}", style="" if busy else "bold")
    if seen.step is not None:
        yield Text(
            f"a step takes {duration(seen.step.whole_s)}, the mean of {counted(seen.step.num, 'step')}"
        )
    if seen.ceilings is not None:
        data = seen.phases.get(Phase.DATA)
        yield ceilings(seen.ceilings, data.share if data is not None else 0.0)
    sizes = tuple(batches(seen.inference)) if seen.inference is not None else ()
    if sizes:
        yield Text("the model alone, by the samples of a batch")
        yield facts(sizes, key_width=16)
    worth = worth_showing(diagnosis.findings, seen.foreign_share)
    on_screen = diagnosis.findings if verbose else worth[:SHOWN]
    for finding in on_screen:
        yield Text("")
        yield from _finding(finding, seen.command)
    yield Text("")
    yield Text(_summary(diagnosis, len(on_screen)))
    yield from _what_it_is_of(seen)
    if verbose and diagnosis.abstained:
        yield Text("\nrules that could not judge, and what they need", style="bold")
        for one in diagnosis.abstained:
            yield Text(shown(f"  {one.code}: {one.needs}"))


def _what_it_is_of(seen: Observation) -> Iterator[RenderableType]:
    """Say what had no time, and which run of the program told what, where the first one did not tell all."""
    for gap in seen.coverage:
        if NO_TIME in gap.why:
            yield Text(shown(f"Not looked at: {gap.what}: {gap.why}."))
    if len([run for run in seen.runs if run.told]) > 1 and seen.runs[1].told != CEILINGS:
        told = (
            f"run {number}: {listed(run.told)}" for number, run in enumerate(seen.runs, start=1) if run.told
        )
        yield Text(shown(f"From {'; '.join(told)}.".replace("_", " ")))


def _finding(finding: Finding, command: Sequence[str]) -> Iterator[RenderableType]:
    head = Text()
    head.append(f"{finding.severity.value}[{finding.code}]", style=_STYLES[finding.severity])
    head.append(f" {shown(finding.title)}")
    yield head
    where = f"{place(finding)}: " if finding.path is not None else ""
    yield Padding(Text(shown(f"{where}{finding.evidence}")), (0, 0, 0, 2))
    by_hand = "" if finding.optimization else " (fix by hand)"
    rows = (("costs", cost(finding)), ("gain", gain(finding)), ("do", f"{finding.advice}{by_hand}"))
    for name, text in rows:
        if text:
            yield Padding(Text(shown(f"{name}: {text}")), (0, 0, 0, 2))
    if finding.optimization:
        words = paste(trying(finding.optimization, command), width=WIDTH - 2)
        begin = "try it: " if len(words) + 10 <= WIDTH else "try it:\n"
        yield Padding(Text(f"{begin}{words}"), (0, 0, 0, 2))


def advice(finding: Finding) -> str:
    """Return what to do, and how to measure it, where the user's command is not known."""
    if not finding.optimization:
        return f"{finding.advice} (fix by hand)"
    return f"{finding.advice} (measure it: hotloop tune --only {finding.optimization} COMMAND)"


def trying(optimization: str, command: Sequence[str]) -> list[str]:
    """Return the words that try one optimization on a command."""
    return ["hotloop", "tune", "--only", optimization, *command]


def _summary(diagnosis: Diagnosis, num_shown: int) -> str:
    num, silent = len(diagnosis.findings), len(diagnosis.abstained)
    if not num:
        found = "No rule found a cause for it"
    elif not num_shown:
        found = f"Nothing that matters was found ({counted(num, 'small finding')}: --verbose)"
    elif num > num_shown:
        found = f"{num_shown} of {counted(num, 'finding')} shown: --verbose lists all"
    else:
        found = counted(num, "finding")
    rest = f"; {counted(silent, 'rule')} could not judge for lack of data" if silent else ""
    return f"{found}{rest}."
