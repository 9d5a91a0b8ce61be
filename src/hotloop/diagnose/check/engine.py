"""Run the rules over an Observation, put a price on what they see, and order it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from hotloop.diagnose.abstain import Abstain
from hotloop.diagnose.check.bottleneck import bottleneck
from hotloop.diagnose.check.device_idle import capped_by_idle
from hotloop.diagnose.check.registry import all_rules
from hotloop.diagnose.check.same_line import one_price_a_line
from hotloop.diagnose.price.cost import LEAST, MATERIAL, NO_STEP_LEFT, Cost, loudness, steps_s
from hotloop.diagnose.price.facts import contended
from hotloop.diagnose.rule import Rule, Symptom
from hotloop.model.diagnosis import Abstention, Diagnosis
from hotloop.model.finding import Finding, Severity
from hotloop.model.observation import Observation
from hotloop.model.ratio import Ratio
from hotloop.stats.quietness import is_too_busy

_BUSY_MACHINE = "busy-machine"
_LOUDEST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


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
    explained: dict[str, int] = {}
    for rule in all_rules() if rules is None else rules:
        try:
            priced = (
                _possible(capped_by_idle(rule, symptom, observation)) for symptom in rule.check(observation)
            )
            seen = [symptom for symptom in priced if _counts(symptom)]
        except Abstain as missing:
            abstained.append(Abstention(rule.code, str(missing)))
            continue
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # Figures that make no sense: one rule that stumbles over them does not take the others with it.
            abstained.append(Abstention(rule.code, f"it failed here ({type(error).__name__}: {error})"))
            continue
        found = [_finding(rule, *_priced_anew(rule, symptom, observation), observation) for symptom in seen]
        findings.extend(found)
        for code in rule.explains if found else ():
            explained[code] = min(explained.get(code, len(Severity)), *(_rank(one) for one in found))
    told = one_price_a_line([one for one in findings if not _is_explained(one, explained)])
    return Diagnosis(
        bottleneck=bottleneck(observation),
        findings=tuple(ordered(told, observation)),
        abstained=tuple(abstained),
        observation=observation,
        session=session,
    )


def _rank(finding: Finding) -> int:
    return _LOUDEST_FIRST.index(finding.severity)


def _is_explained(finding: Finding, explained: Mapping[str, int]) -> bool:
    """Whether a finding as loud or louder is the cause of this one."""
    return finding.code in explained and explained[finding.code] <= _rank(finding)


def _counts(symptom: Symptom) -> bool:
    return symptom.cost is None or symptom.cost.share >= LEAST


def _possible(symptom: Symptom) -> Symptom:
    """What was measured under a profiler may add up to more than the step: it costs the whole step at most.

    No gain is told of what takes all of it: no step is nothing.
    """
    cost = symptom.cost
    if cost is not None and max(cost.share, cost.high) > 1.0:
        share, low, high = (min(1.0, one) for one in (cost.share, cost.low, cost.high))
        symptom = dataclasses.replace(symptom, cost=Cost(share, low, high, cost.step_s))
    too_much = symptom.gain is not None and symptom.gain.ratio >= NO_STEP_LEFT
    return dataclasses.replace(symptom, gain=None) if too_much else symptom


def _priced_anew(rule: Rule, symptom: Symptom, observation: Observation) -> tuple[Symptom, Ratio | None]:
    """What was predicted for the optimization that is the fix, the surest of its parameters; else the rule's own gain.

    A prediction of more than the cost allows was spoilt by what else used the machine: the rule's own counts. One that
    is more than the cost itself allows, but not its upper end, tells that the cost is higher.
    """
    told = [one.ratio for one in observation.predictions if one.name == rule.optimization]
    if not told or not rule.fixed_by_it or symptom.by_hand:
        return symptom, symptom.gain
    surest = max(told, key=lambda one: one.low)
    allowed = symptom.cost.gain().high if symptom.cost is not None else math.inf
    if surest.ratio > allowed or surest.ratio >= NO_STEP_LEFT:
        return symptom, symptom.gain
    if symptom.cost is not None and (taken := 1.0 - 1.0 / surest.ratio) > symptom.cost.share:
        symptom = dataclasses.replace(symptom, cost=dataclasses.replace(symptom.cost, share=taken))
    return symptom, surest


def _of_loop(gain: Ratio | None, cost: Cost | None, observation: Observation) -> Ratio | None:
    """Return a gain of the step as one of a loop that acts, too: `tune` measures steps together with their rollouts."""
    rollouts_s, step = observation.run.parts.get("rollout_s", 0.0), observation.step
    if gain is None or not rollouts_s or step is None or (cost is not None and cost.step_s > step.whole_s):
        return gain
    part = steps_s(observation) / (steps_s(observation) + rollouts_s)
    return Ratio(*(1.0 / (1.0 - part * (1.0 - 1.0 / one)) for one in (gain.ratio, gain.low, gain.high)))


def _severity(rule: Rule, symptom: Symptom, gain: Ratio | None, observation: Observation) -> Severity:
    """Return how loud a finding is: one that a busy machine makes by itself is information there.

    So is one whose fix was tried in this program and is worth less than what is material.
    """
    if rule.made_by_neighbours and contended(observation):
        return Severity.INFO
    if gain is not None and gain is not symptom.gain and 1.0 - 1.0 / gain.ratio < MATERIAL:
        return Severity.INFO
    return symptom.severity or loudness(symptom.cost)


def _finding(rule: Rule, symptom: Symptom, gain: Ratio | None, observation: Observation) -> Finding:
    seconds = symptom.cost.seconds if symptom.cost else (None, None, None)
    return Finding(
        code=rule.code,
        title=rule.title,
        severity=_severity(rule, symptom, gain, observation),
        path=symptom.path,
        line=symptom.line,
        metric=symptom.metric,
        cost_s=seconds[0],
        cost_low_s=seconds[1],
        cost_high_s=seconds[2],
        gain=_of_loop(gain, symptom.cost, observation),
        evidence=symptom.evidence,
        advice=symptom.advice or rule.advice,
        optimization=None if symptom.by_hand else rule.optimization,
    )


def order(finding: Finding) -> tuple[int, float, float, str]:
    """Return what findings are sorted by: the loudest first, of those the largest gain."""
    gain = finding.gain.ratio if finding.gain else 1.0
    return _rank(finding), -gain, -(finding.cost_s or 0.0), finding.code


def ordered(findings: Iterable[Finding], observation: Observation) -> list[Finding]:
    """Return findings in their order, those that name what is slow before those that help without it.

    Where others were too busy for any price to be relied on, that comes first.
    """
    found = sorted(findings, key=order)
    precedes = {rule.code: rule.precedes for rule in all_rules()}
    for exact in [one for one in found if precedes.get(one.code)]:
        at = found.index(exact)
        first = next(
            (
                place
                for place, other in enumerate(found[:at])
                if other.code in precedes[exact.code] and other.severity is exact.severity
            ),
            at,
        )
        found.insert(first, found.pop(at))
    busy = is_too_busy(observation.foreign_share)
    return sorted(found, key=lambda one: not (busy and one.code == _BUSY_MACHINE))
