"""Beside what was measured, what stands in the program's source: lines for findings, and what could hide in a phase."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hotloop.diagnose.check.engine import ordered
from hotloop.diagnose.check.registry import all_rules as measured_rules
from hotloop.diagnose.lines.forward_loops import forward_loops
from hotloop.diagnose.lines.setting_line import setting_line
from hotloop.diagnose.lines.static_findings import priced
from hotloop.diagnose.lines.under_condition import may_not_run
from hotloop.diagnose.price.cost import MATERIAL
from hotloop.diagnose.rules.memory.memory_growing import container_of
from hotloop.lint.check.config import LintConfig
from hotloop.lint.check.registry import all_rules
from hotloop.lint.check.run import lint_files
from hotloop.lint.read.suppress import Suppressions
from hotloop.lint.rule import Rule
from hotloop.model.diagnosis import Diagnosis
from hotloop.model.errors import HotloopError
from hotloop.model.finding import Finding, Severity
from hotloop.observe.profile.container_line import growing_line

_CAUSES = {"memory-growing": ("loss-graph-kept-alive", "outputs-kept-on-device")}
"""Static findings that say where something comes from that is measured under another name. Together they are certain:
an error, since such a program ends when its memory is full. A line in a branch may not have run."""
_OF_MEMORY = {code for codes in _CAUSES.values() for code in codes}
_FAMILIES = ("host", "run")
"""What runs in the user's own code: static findings of these are shown without a price, too."""


def with_source(diagnosis: Diagnosis, folder: Path) -> Diagnosis:
    """Return the diagnosis with lines from the program's files, if its script is still the one that was observed.

    A measured finding without a line takes that of the static finding of the same code; one whose line says
    `# hotloop: ignore[CODE]` goes. Static findings whose lines hold what they cost get their price from the samples
    of the host's stacks. Others that nothing measured stands for come last, as information: they are there, their price
    is unknown.

    Args:
        diagnosis: what was measured.
        folder: paths in it become relative to it, as annotations want them.
    """
    rules = {rule.code: rule for rule in all_rules() if _is_wanted(rule)}
    files = _files(diagnosis)
    static = _static(files, sorted(rules))
    places = {(one.code, one.path, one.line) for one in static}
    loops = forward_loops(diagnosis.observation, files)
    static += [one for one in loops if (one.code, one.path, one.line) not in places]
    doubted = {
        id(one) for one in static if one.code in _OF_MEMORY and may_not_run(one, diagnosis.observation)
    }
    sure, perhaps = ([one for one in static if (id(one) in doubted) is told] for told in (False, True))
    placed = [
        _perhaps_from(_held(_placed(finding, sure, files), diagnosis), perhaps)
        for finding in diagnosis.findings
    ]
    measured = {finding.code for finding in placed} | _judged(diagnosis)
    unmeasured = [one for one in static if one.code not in measured]
    holding = [one for one in unmeasured if rules[one.code].holds_its_cost]
    known, unknown = priced(diagnosis.observation, placed, holding)
    rest = [
        _unpriced(one)
        for one in unmeasured
        if (one not in holding or one in unknown)
        and rules[one.code].family in _FAMILIES
        and one.severity is not Severity.INFO
    ]
    kept = (
        _relative(one, folder) for one in (*ordered(known, diagnosis.observation), *rest) if not _ignored(one)
    )
    return msgspec.structs.replace(diagnosis, findings=tuple(kept))


def _judged(diagnosis: Diagnosis) -> set[str]:
    """Return the codes of measured rules that had the data to judge: what they did not find costs nothing here."""
    return {rule.code for rule in measured_rules()} - {one.code for one in diagnosis.abstained}


def _is_wanted(rule: Rule) -> bool:
    return rule.family in _FAMILIES or rule.holds_its_cost or rule.code in _OF_MEMORY


def _relative(finding: Finding, folder: Path) -> Finding:
    if finding.path is None or not Path(finding.path).is_relative_to(folder):
        return finding
    return msgspec.structs.replace(finding, path=str(Path(finding.path).relative_to(folder)))


def _files(diagnosis: Diagnosis) -> list[str]:
    """Return the program's own files that were seen to run; none where its script has changed since."""
    program = diagnosis.observation.program
    if program.script is None or program.script_sha256 is None:
        return []
    script = Path(program.script)
    if not script.is_file() or hashlib.sha256(script.read_bytes()).hexdigest() != program.script_sha256:
        return []
    deep = diagnosis.observation.deep
    frames = deep.host.frames if deep and deep.host else ()
    seen = sorted({frame.path for frame in frames if frame.owner == "user" and frame.path.endswith(".py")})
    # The command may say `train.py` where the frames say `/home/me/train.py`: one file has one name, the frames'.
    names = {Path(path).resolve(): path for path in [str(script), *seen] if Path(path).is_file()}
    return list(names.values())


def _static(files: Sequence[str], codes: Sequence[str]) -> list[Finding]:
    if not files:
        return []
    try:
        found = lint_files(files, LintConfig(select=tuple(codes))).findings
    except HotloopError:
        return []
    return [one for one in found if one.line is not None and one.code in codes]


def _ignored(finding: Finding) -> bool:
    if finding.path is None or finding.line is None:
        return False
    try:
        text = Path(finding.path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return Suppressions(text).covers(finding.code, finding.line)


def _placed(finding: Finding, static: list[Finding], files: Sequence[str]) -> Finding:
    if finding.path is not None:
        return finding
    causes = _CAUSES.get(finding.code, ())
    twin = next((one for one in static if one.code == finding.code or one.code in causes), None)
    if twin is None:
        place = setting_line(finding.code, files)
        return _asked_for(finding, *place) if place else finding
    found = msgspec.structs.replace(finding, path=twin.path, line=twin.line)
    if twin.code not in causes:
        return found
    evidence = f"{finding.evidence}; {twin.evidence}"
    return msgspec.structs.replace(found, evidence=evidence, severity=Severity.ERROR)


def _perhaps_from(finding: Finding, perhaps: list[Finding]) -> Finding:
    """Name the lines in branches that would explain what no line was found for."""
    causes = _CAUSES.get(finding.code, ())
    twin = next((one for one in perhaps if one.code in causes), None)
    if twin is None or finding.path is not None:
        return finding
    place = f"{Path(twin.path or '').name}:{twin.line}"
    evidence = f"{finding.evidence}; if {place} runs, which was not seen: {twin.evidence}"
    return msgspec.structs.replace(finding, evidence=evidence)


def _asked_for(finding: Finding, path: str, line: int) -> Finding:
    """Place a setting at the line that asks for it: what the program does to itself is a fault, where it costs much."""
    costs = finding.gain is not None and finding.gain.ratio >= 1.0 / (1.0 - MATERIAL)
    severity = Severity.WARNING if costs and finding.severity is Severity.INFO else finding.severity
    return msgspec.structs.replace(finding, path=path, line=line, severity=severity)


def _held(finding: Finding, diagnosis: Diagnosis) -> Finding:
    """Place memory that grows where the container gains an entry that was seen to grow."""
    holder = container_of(diagnosis.observation)
    if finding.path is not None or finding.code not in _CAUSES or holder is None:
        return finding
    line = growing_line(holder)
    return finding if line is None else msgspec.structs.replace(finding, path=holder.path, line=line)


def _unpriced(finding: Finding) -> Finding:
    evidence = f"{finding.evidence}; seen in the source, its time was not measured"
    return msgspec.structs.replace(finding, severity=Severity.INFO, evidence=evidence)
