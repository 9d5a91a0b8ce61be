"""Findings for a person: one line where, one line what to do."""

from collections import Counter
from collections.abc import Sequence

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown


def render_text(findings: Sequence[Finding], num_files: int) -> str:
    """One block for each finding, then a count."""
    lines: list[str] = []
    for finding in findings:
        head = f"{_place(finding)} {finding.severity.value}[{finding.code}]"
        lines.append(shown(f"{head} {finding.title}: {finding.evidence}"))
        tried = f" (hotloop tune --only {finding.optimization})" if finding.optimization else ""
        lines.append(shown(f"    {finding.advice}{tried}"))
    lines.append(_summary(findings, num_files))
    return "\n".join(lines) + "\n"


def _place(finding: Finding) -> str:
    if finding.path is None:
        return f"{finding.metric or 'run'}:"
    return f"{finding.path}:{finding.line}:" if finding.line is not None else f"{finding.path}:"


def _summary(findings: Sequence[Finding], num_files: int) -> str:
    files = f"{num_files} file{'' if num_files == 1 else 's'}"
    if not findings:
        return f"No findings in {files}."
    counts = Counter(finding.severity for finding in findings)
    named = [f"{counts[level]} {level.value}" for level in reversed(Severity) if counts[level]]
    return f"{len(findings)} findings in {files}: {', '.join(named)}. `hotloop explain CODE` tells more."
