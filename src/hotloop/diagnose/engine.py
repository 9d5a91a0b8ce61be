"""Run the rules over an Observation, put a price on what they see, and order it."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.bottleneck import bottleneck
from hotloop.diagnose.registry import all_rules
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.diagnosis import Abstention, Diagnosis
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation
from hotloop.model.ratio import Ratio

MATERIAL = 0.05
"""Share of the step or the loop from which a cost is worth a warning: identical processes were seen to differ by 3.5%
for as long as they lived, so that less cannot be told from chance in one run."""
LEAST = 0.01
"""Less is not reported: a gain below 1% is never called faster by `tune`."""
_LOUD = (Severity.ERROR, Severity.WARNING)


def diagnose(
    observation: Observation, session: str | None = None, rules: Sequence[Rule] | None = None
) -> Diagnosis:
    """Return what holds the observed program back.

    Args:
        observation: what was measured.
        session: where it is kept.
        rules: other rules than all.
    """
    findings: list[Finding] = []
    abstained: list[Abstention] = []
    explained: set[str] = set()
    for rule in all_rules() if rules is None else rules:
        try:
            seen = [symptom for symptom in rule.check(observation) if _counts(symptom)]
        except Abstain as missing:
            abstained.append(Abstention(rule.code, str(missing)))
            continue
        findings.extend(_finding(rule, symptom, _gain(rule, symptom, observation)) for symptom in seen)
        explained |= rule.explains if seen else set()
    return Diagnosis(
        bottleneck=bottleneck(observation),
        findings=tuple(sorted((one for one in findings if one.code not in explained), key=_order)),
        abstained=tuple(abstained),
        observation=observation,
        session=session,
    )


def _counts(symptom: Symptom) -> bool:
    return symptom.cost is None or symptom.cost.share >= LEAST


def _gain(rule: Rule, symptom: Symptom, observation: Observation) -> Ratio | None:
    """What was predicted for the optimization that is the fix, the best of its parameters; else the rule's own."""
    told = [one.ratio for one in observation.predictions if one.name == rule.optimization]
    return max(told, key=lambda one: one.ratio) if told and rule.fixed_by_it else symptom.gain


def _finding(rule: Rule, symptom: Symptom, gain: Ratio | None) -> Finding:
    seconds = symptom.cost.seconds if symptom.cost else (None, None, None)
    return Finding(
        code=rule.code,
        title=rule.title,
        severity=symptom.severity or _severity(symptom),
        path=symptom.path,
        line=symptom.line,
        metric=symptom.metric,
        cost_s=seconds[0],
        cost_low_s=seconds[1],
        cost_high_s=seconds[2],
        gain=gain,
        evidence=symptom.evidence,
        advice=symptom.advice or rule.advice,
        optimization=rule.optimization,
    )


def _severity(symptom: Symptom) -> Severity:
    """A warning is a material cost that the noise of the steps does not reach."""
    cost = symptom.cost
    return Severity.WARNING if cost and cost.share >= MATERIAL and cost.low > LEAST else Severity.INFO


def _order(finding: Finding) -> tuple[bool, float, float, str]:
    gain = finding.gain.ratio if finding.gain else 1.0
    return finding.severity not in _LOUD, -gain, -(finding.cost_s or 0.0), finding.code
