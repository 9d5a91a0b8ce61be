"""Findings as GitHub workflow commands, which become annotations of a pull request."""

from collections.abc import Sequence

from hotloop.model.finding import Finding, Severity
from hotloop.model.foreign_text import shown

_LEVELS = {Severity.INFO: "notice", Severity.WARNING: "warning", Severity.ERROR: "error"}


def render_github(findings: Sequence[Finding]) -> str:
    """One command for each finding."""
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: Finding) -> str:
    place = f"file={_property(finding.path or '')}," if finding.path is not None else ""
    line = f"line={finding.line}," if finding.line is not None else ""
    title = _property(f"{finding.code}: {finding.title}")
    message = _data(f"{finding.evidence}. {finding.advice}")
    return f"::{_LEVELS[finding.severity]} {place}{line}title={title}::{message}"


def _data(text: str) -> str:
    return shown(text, lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
