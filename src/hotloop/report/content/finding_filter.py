"""Which findings are worth telling, and what they cost and would gain, as every rendering says it."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.finding import Finding, Severity
from hotloop.model.quantities import duration
from hotloop.report.content.ratios import WIDE, told_gain
from hotloop.stats.quietness import is_too_busy

SHOWN = 3
"""Findings that are shown at once; the rest is counted, or folded."""
LEAST_GAIN = 1.015
"""A gain that rounds to 1.01x or less is not worth a line of advice."""
_ABOUT_THE_MACHINE = frozenset({"busy-machine", "unstable-step"})
"""What the warning at the top says already where the machine was busy."""


def worth_showing(findings: Sequence[Finding], foreign_share: float | None) -> list[Finding]:
    """Return the findings that somebody would act on, as they are ordered.

    Args:
        findings: all.
        foreign_share: of the machine, which others used meanwhile.
    """
    busy = is_too_busy(foreign_share)
    return [
        finding
        for finding in findings
        if not (busy and finding.code in _ABOUT_THE_MACHINE)
        and (finding.severity is not Severity.INFO or _gains(finding))
    ]


def _gains(finding: Finding) -> bool:
    return finding.gain is not None and finding.gain.ratio >= LEAST_GAIN


def cost(finding: Finding) -> str:
    """Return what it costs, with as much of the interval as says something; empty: not measured."""
    if finding.cost_s is None:
        return ""
    low, high = finding.cost_low_s, finding.cost_high_s
    told = low is not None and high is not None and low > 0 and high <= WIDE * low
    interval = f" [{duration(low or 0.0)}, {duration(high or 0.0)}]" if told else ""
    spread = ", spread over all steps" if (finding.metric or "").startswith("run.") else ""
    return f"{'' if told else 'about '}{duration(finding.cost_s)} a step{spread}{interval}"


def gain(finding: Finding) -> str:
    """Return what a fix would gain, and that it is predicted; empty: not predicted, or too little."""
    if finding.gain is None or not _gains(finding):
        return ""
    return f"{told_gain(finding.gain)}, predicted{'; tune measures it' if finding.optimization else ''}"
