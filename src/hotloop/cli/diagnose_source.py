"""Beside what was measured, what stands in the program's source: lines for findings, and what could hide in a phase."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from hotloop.lint.config import LintConfig
from hotloop.lint.run import lint_files
from hotloop.lint.suppress import Suppressions
from hotloop.model.diagnosis import Diagnosis
from hotloop.model.errors import HotloopError
from hotloop.model.finding import Finding, Severity

_FAMILIES = ("host", "run")
"""What runs in the user's own code, whose time is measured as a phase and not by line."""


def with_source(diagnosis: Diagnosis, folder: Path) -> Diagnosis:
    """Return the diagnosis with lines from the script, if it is still the one that was observed.

    A measured finding without a line takes that of the static finding of the same code; one whose line says
    `# hotloop: ignore[CODE]` goes. Static findings that nothing measured stands for come last, as information: they are
    there, their price is unknown.

    Args:
        diagnosis: what was measured.
        folder: paths in it become relative to it, as annotations want them.
    """
    script = _script(diagnosis)
    static = _static(script) if script is not None else []
    placed = [_placed(finding, static) for finding in diagnosis.findings]
    measured = {finding.code for finding in placed}
    rest = [_unpriced(one) for one in static if one.code not in measured]
    kept = (_relative(one, folder) for one in (*placed, *rest) if not _ignored(one))
    return msgspec.structs.replace(diagnosis, findings=tuple(kept))


def _relative(finding: Finding, folder: Path) -> Finding:
    if finding.path is None or not Path(finding.path).is_relative_to(folder):
        return finding
    return msgspec.structs.replace(finding, path=str(Path(finding.path).relative_to(folder)))


def _script(diagnosis: Diagnosis) -> Path | None:
    program = diagnosis.observation.program
    if program.script is None or program.script_sha256 is None:
        return None
    path = Path(program.script)
    same = path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == program.script_sha256
    return path if same else None


def _static(script: Path) -> list[Finding]:
    try:
        found = lint_files([str(script)], LintConfig(select=_FAMILIES)).findings
    except HotloopError:
        return []
    return [
        finding for finding in found if finding.severity is not Severity.INFO and finding.line is not None
    ]


def _ignored(finding: Finding) -> bool:
    if finding.path is None or finding.line is None:
        return False
    try:
        text = Path(finding.path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return Suppressions(text).covers(finding.code, finding.line)


def _placed(finding: Finding, static: list[Finding]) -> Finding:
    if finding.path is not None:
        return finding
    twin = next((one for one in static if one.code == finding.code), None)
    return msgspec.structs.replace(finding, path=twin.path, line=twin.line) if twin else finding


def _unpriced(finding: Finding) -> Finding:
    evidence = f"{finding.evidence}; seen in the source, its time was not measured"
    return msgspec.structs.replace(finding, severity=Severity.INFO, evidence=evidence)
