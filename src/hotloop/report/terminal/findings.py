"""A Diagnosis as text, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hotloop.model.diagnosis import Diagnosis
from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown
from hotloop.report.terminal.ceilings import ceilings
from hotloop.report.terminal.quantities import duration

_STYLES = {Severity.INFO: "cyan", Severity.WARNING: "bold yellow", Severity.ERROR: "bold red"}


def render(diagnosis: Diagnosis, *, verbose: bool = False) -> RenderableType:
    """Return the whole diagnosis, ready to print.

    Args:
        diagnosis: what to show.
        verbose: list the rules that could not judge, too.
    """
    return Group(*_parts(diagnosis, verbose=verbose))


def _parts(diagnosis: Diagnosis, *, verbose: bool) -> Iterator[RenderableType]:
    if diagnosis.bottleneck is None:
        yield Text("no step was measured")
        return
    yield Text(diagnosis.bottleneck.sentence, style="bold")
    step = diagnosis.observation.step
    if step is not None:
        yield Text(f"a step takes {duration(step.median_s)}, median of {step.num}")
    if diagnosis.observation.ceilings is not None:
        yield ceilings(diagnosis.observation.ceilings)
    for finding in diagnosis.findings:
        yield Text("")
        yield from _finding(finding)
    yield Text("")
    yield Text(_summary(diagnosis))
    if verbose and diagnosis.abstained:
        yield Text("\nrules that could not judge, and what they need", style="bold")
        for one in diagnosis.abstained:
            yield Text(shown(f"  {one.code}: {one.needs}"))


def _finding(finding: Finding) -> Iterator[RenderableType]:
    head = Text()
    head.append(f"{finding.severity.value}[{finding.code}]", style=_STYLES[finding.severity])
    head.append(f" {shown(finding.title)}")
    yield head
    lines = [(place(finding), finding.evidence), ("costs", _cost(finding)), ("gain", _gain(finding))]
    tried = f" (hotloop tune --only {finding.optimization})" if finding.optimization else ""
    lines.append(("do", f"{finding.advice}{tried}"))
    for name, text in lines:
        if text:
            yield Padding(Text(shown(f"{name}: {text}")), (0, 0, 0, 2))


def place(finding: Finding) -> str:
    """Return where a finding is: `train.py:12`, or the metric it is about."""
    if finding.path is None:
        return finding.metric or "run"
    return f"{finding.path}:{finding.line}" if finding.line is not None else finding.path


def _cost(finding: Finding) -> str:
    if finding.cost_s is None:
        return ""
    low, high = finding.cost_low_s, finding.cost_high_s
    interval = f" [{duration(low)}, {duration(high)}]" if low is not None and high is not None else ""
    return f"{duration(finding.cost_s)} a step{interval}"


def _gain(finding: Finding) -> str:
    gain = finding.gain
    return (
        "" if gain is None else f"{gain.ratio:.2f}x [{gain.low:.2f}, {gain.high:.2f}] predicted, not measured"
    )


def _summary(diagnosis: Diagnosis) -> str:
    num = len(diagnosis.findings)
    found = "Nothing was found" if not num else f"{num} finding{'s' if num > 1 else ''}"
    silent = len(diagnosis.abstained)
    rest = f"; {silent} rules lack the data to judge (--verbose)" if silent else ""
    tell = " `hotloop explain CODE` tells more." if num else ""
    return f"{found}{rest}.{tell}"
