"""One line, one price: what some calls on a line cost is part of what the line costs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hotloop.model.finding import Finding, Severity

_WHOLE = frozenset(
    {"hot-line-outside-phases", "hot-line-before-backward", "slow-dataset-line", "slow-sampler"}
)
"""Findings that price all that is spent under a line."""
_PARTS = frozenset({"sync-in-step", "tensor-creation-in-step", "copy-in-step", "host-code-in-model"})
"""Findings that price some calls on a line."""
_SAME = {
    "forward-without-backward": frozenset({"repeated-computation"}),
    "constant-computed-each-step": frozenset({"tensor-creation-in-step", "copy-in-step"}),
}
"""Findings of the same time on a line, and of the same remedy: the dearer of them counts."""
_LOUDEST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def one_price_a_line(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those that are part of another's price, which says so."""
    findings = _each_once(findings)
    wholes: dict[tuple[str | None, int | None], Finding]
    wholes = {(one.path, one.line): one for one in findings if one.code in _WHOLE and one.line is not None}
    kept: dict[int, Finding] = {}
    for number, one in enumerate(findings):
        whole = wholes.get((one.path, one.line)) if one.code in _PARTS else None
        if whole is None or (whole.cost_s or 0.0) < (one.cost_s or 0.0):
            kept[number] = one
        else:
            wholes[one.path, one.line] = _with_part(whole, one)
    return [wholes[one.path, one.line] if one.code in _WHOLE else one for one in kept.values()]


def _each_once(findings: Sequence[Finding]) -> list[Finding]:
    kept = list(findings)
    for lead in [one for one in findings if one.code in _SAME and one.line is not None]:
        here = [one for one in kept if (one.path, one.line) == (lead.path, lead.line)]
        same = [one for one in here if one.code in _SAME[lead.code]]
        dearest = max([lead, *same], key=lambda one: one.cost_s or 0.0)
        parts = same if dearest is lead else [lead]
        whole = dearest
        for part in parts:
            whole = _with_part(whole, part)
        kept = [whole if one is dearest else one for one in kept if not any(one is part for part in parts)]
    return kept


def _with_part(whole: Finding, part: Finding) -> Finding:
    louder = min(whole.severity, part.severity, key=_LOUDEST_FIRST.index)
    return msgspec.structs.replace(
        whole, evidence=f"{whole.evidence}; of that {part.evidence}", severity=louder
    )
