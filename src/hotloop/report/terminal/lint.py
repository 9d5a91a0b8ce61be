"""Findings for a person: one line where, one line what to do."""

import textwrap
from collections import Counter
from collections.abc import Sequence

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import counted
from hotloop.report.terminal.findings import advice, place
from hotloop.report.terminal.layout import WIDTH

INDENT = "    "


def render_text(findings: Sequence[Finding], num_files: int) -> str:
    """One block for each line and code, then a count."""
    lines: list[str] = []
    told: set[tuple[str, str | None, int | None]] = set()
    for finding in findings:
        if (finding.code, finding.path, finding.line) in told:
            continue
        told.add((finding.code, finding.path, finding.line))
        head = f"{place(finding)}: {finding.severity.value}[{finding.code}]"
        lines += _wrapped(f"{head} {finding.title}")
        lines += _wrapped(f"{INDENT}{finding.evidence}") if finding.evidence else []
        lines += _wrapped(f"{INDENT}{advice(finding)}")
    lines.append(_summary(findings, num_files))
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    """Return lines that fit the screen; a place stays whole, for editors to open."""
    return textwrap.wrap(
        shown(text), WIDTH, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def _summary(findings: Sequence[Finding], num_files: int) -> str:
    files = counted(num_files, "file")
    if not findings:
        return f"No findings in {files}."
    counts = Counter(finding.severity for finding in findings)
    named = [_named(counts[level], level) for level in reversed(Severity) if counts[level]]
    found = counted(len(findings), "finding")
    return f"{found} in {files}: {', '.join(named)}.\n`hotloop explain {findings[0].code}` tells more."


def _named(num: int, level: Severity) -> str:
    return f"{num} info" if level is Severity.INFO else counted(num, level.value)
