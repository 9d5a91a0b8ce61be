"""Findings for a person: one line where, one line what to do."""

import textwrap
from collections import Counter
from collections.abc import Sequence

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown
from hotloop.model.quantities import counted
from hotloop.report.content.advice import advice
from hotloop.report.content.places import place
from hotloop.report.terminal.console import screen_width

INDENT = "    "


def render_text(findings: Sequence[Finding], num_files: int, num_safe: int = 0, num_unsafe: int = 0) -> str:
    """One block for each line and code, then a count.

    Args:
        findings: to show.
        num_files: that were read.
        num_safe: findings that `--fix` would end.
        num_unsafe: further ones, with `--unsafe`.
    """
    lines: list[str] = []
    told = _each_once(findings)
    for finding in told:
        head = f"{place(finding)}: {finding.severity.value}[{finding.code}]"
        lines += _wrapped(f"{head} {finding.title}")
        lines += _wrapped(f"{INDENT}{finding.evidence}") if finding.evidence else []
        # Some of what no optimization tries is fixed by --fix: the last lines count those.
        lines += _wrapped(f"{INDENT}{advice(finding) if finding.optimization else finding.advice}")
    lines.append(_summary(told, num_files))
    lines += _can_be_fixed(num_safe, num_unsafe)
    lines += [f"`hotloop explain {findings[0].code}` tells more."] if findings else []
    return "\n".join(lines) + "\n"


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    """Return the first of each line and code: what is counted is what is told."""
    first: dict[tuple[str, str | None, int | None], Finding] = {}
    for finding in findings:
        first.setdefault((finding.code, finding.path, finding.line), finding)
    return list(first.values())


def _wrapped(text: str) -> list[str]:
    """Return lines that fit the screen; a place stays whole, for editors to open."""
    return textwrap.wrap(
        shown(text), screen_width(), subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
    )


def _summary(findings: Sequence[Finding], num_files: int) -> str:
    files = counted(num_files, "file")
    if not findings:
        return f"No findings in {files}."
    counts = Counter(finding.severity for finding in findings)
    named = [_named(counts[level], level) for level in reversed(Severity) if counts[level]]
    found = counted(len(findings), "finding")
    return f"{found} in {files}: {', '.join(named)}."


def _can_be_fixed(num_safe: int, num_unsafe: int) -> list[str]:
    if num_safe and num_unsafe:
        return [f"{num_safe} can be fixed with --fix, {num_unsafe} more with --fix --unsafe."]
    if num_safe:
        return [f"{num_safe} can be fixed with --fix."]
    return [f"{num_unsafe} can be fixed with --fix --unsafe."] if num_unsafe else []


def _named(num: int, level: Severity) -> str:
    return f"{num} info" if level is Severity.INFO else counted(num, level.value)
