"""The confusion table, as Markdown."""

from __future__ import annotations

import datetime
import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.faults.library import Case

from hotloop.machine.identity import identity


@dataclass(frozen=True)
class Outcome:
    """What was said of one program."""

    case: Case
    diagnosis: dict[str, Any] | None
    """None: no diagnosis came."""
    errors: list[str]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings, the first first."""
        return list(self.diagnosis["findings"]) if self.diagnosis else []

    @property
    def loud(self) -> list[str]:
        """Codes louder than information."""
        return [one["code"] for one in self.findings if one["severity"] != "info"]

    @property
    def top(self) -> str:
        """The code of the first finding; for clean programs the first warning."""
        if self.diagnosis is None:
            return "no diagnosis"
        if self.case.fault is None:
            return self.loud[0] if self.loud else "no warning"
        return str(self.findings[0]["code"]) if self.findings else "nothing"

    @property
    def expected(self) -> str:
        """What would be right."""
        if self.case.fault is None:
            return "no warning"
        return " or ".join(sorted(self.case.fault.expected)) or "(no rule names it yet)"

    @property
    def right(self) -> bool:
        """Whether the top finding is the injected fault; for clean programs: whether nothing is loud."""
        if self.diagnosis is None:
            return False
        return not self.loud if self.case.fault is None else self.top in self.case.fault.expected

    @property
    def said(self) -> str:
        """Severity, cost and bottleneck in a few words."""
        if self.diagnosis is None:
            return " ".join(self.errors)
        first = self.findings[0] if self.findings else None
        severity = first["severity"] if first else "-"
        sentence = (self.diagnosis["bottleneck"] or {}).get("sentence", "-")
        return f"{severity}; {sentence}"


def page(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The whole page."""
    faulty = [one for one in outcomes if one.case.fault]
    named = [one for one in faulty if one.case.fault and one.case.fault.expected]
    clean = [one for one in outcomes if not one.case.fault]
    machine = identity()
    lines = [
        "# Diagnosis of programs with one known fault",
        "",
        f"{datetime.date.today().isoformat()}, {machine.cpu_model}, {machine.num_cores} cores, load "
        f"{os.getloadavg()[0]:.1f} at the end, Python {platform.python_version()}; {seconds:g} s of steps of each "
        f"program, one thread, passive waiting; others took {_foreign(outcomes)} of the machine meanwhile.",
        "",
        f"- The injected fault is the top finding in {sum(one.right for one in faulty)} of {len(faulty)} programs; "
        f"in {sum(one.right for one in named)} of the {len(named)} whose fault a rule exists for.",
        f"- It is the top finding and a warning in {sum(one.right and bool(one.loud) for one in faulty)}.",
        f"- {sum(one.right for one in clean)} of {len(clean)} clean programs have no warning.",
        "",
        "| program | injected | top finding | severity; bottleneck | right |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.case.name} | {one.expected} | {one.top} | {one.said} | {'yes' if one.right else '**no**'} |"
        for one in outcomes
    ]
    missed = [one for one in faulty if not one.right]
    lines += ["", "## Not found yet, and what it would take", ""]
    lines += [f"- {one.case.name}: {_needs(one)}" for one in missed]
    lines += ["", "## Confusion", "", "| injected | top finding | programs |", "|---|---|---|"]
    counts = Counter((one.expected, one.top) for one in outcomes)
    lines += [f"| {expected} | {top} | {num} |" for (expected, top), num in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def _foreign(outcomes: Sequence[Outcome]) -> str:
    shares = [one.diagnosis["observation"].get("foreign_share") for one in outcomes if one.diagnosis]
    known = [share for share in shares if share is not None]
    return f"{min(known):.0%} to {max(known):.0%} (known for {len(known)})" if known else "an unknown share"


def _needs(outcome: Outcome) -> str:
    fault = outcome.case.fault
    assert fault is not None
    return fault.needs or f"a better rule; said {outcome.top}"
