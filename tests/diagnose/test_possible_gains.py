"""A gain of more than the step holds is not told."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.registry import all_rules
from hotloop.diagnose.price.cost import Cost
from hotloop.diagnose.rule import Symptom
from hotloop.model.ceilings import Prediction
from hotloop.model.finding import Finding, Severity
from hotloop.model.ratio import Ratio

from ..report.test_observation_screen import observation
from .observations import with_parts


@pytest.mark.parametrize(
    ("share", "gain", "told"), [(1.7, 100.0, False), (1.0, 100.0, False), (0.6, 2.5, True)]
)
def test_a_gain_that_leaves_no_step_is_none(share: float, gain: float, told: bool) -> None:
    symptom = Symptom(
        evidence="seen", cost=Cost(share, share / 2, share, 0.1), gain=Ratio(gain, 1.0, gain), by_hand=True
    )
    rule = dataclasses.replace(all_rules()[0], check=lambda _: [symptom], explains=())
    (finding,) = diagnose(observation(), rules=[rule]).findings
    assert (finding.gain is not None) is told
    assert finding.cost_s == pytest.approx(min(1.0, share) * 0.1)


def _tried(predicted: float) -> Finding:
    """Return a finding of 30% of the step, whose fix was tried."""
    rule = next(one for one in all_rules() if one.code == "anomaly-mode-on")
    symptom = Symptom(evidence="seen", cost=Cost(0.3, 0.1, 0.5, 0.1), gain=Ratio(1.3, 1.1, 2.0))
    seen = msgspec.structs.replace(
        observation(),
        predictions=(
            Prediction(
                name="debug_apis_off",
                params={},
                ratio=Ratio(predicted, min(predicted, 1.1), 5.0),
                method="switched",
            ),
        ),
    )
    (finding,) = diagnose(seen, rules=[dataclasses.replace(rule, check=lambda _: [symptom])]).findings
    return finding


@pytest.mark.parametrize(
    ("predicted", "severity"), [(0.97, Severity.INFO), (1.02, Severity.INFO), (1.2, Severity.WARNING)]
)
def test_what_was_tried_and_brings_nothing_is_no_warning(predicted: float, severity: Severity) -> None:
    assert _tried(predicted).severity is severity


@pytest.mark.parametrize(
    ("predicted", "cost_share", "gain"),
    [
        (1.2, 0.3, 1.2),  # less than the cost allows: the fix takes a part of it away
        (1.6, 1 - 1 / 1.6, 1.6),  # more, within its upper end: the cost is higher than it was taken to be
        (4.0, 0.3, 1.3),  # more than the upper end: something else was measured
    ],
)
def test_a_cost_is_at_least_what_was_predicted_to_go(
    predicted: float, cost_share: float, gain: float
) -> None:
    finding = _tried(predicted)
    assert finding.cost_s == pytest.approx(cost_share * 0.1)
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(gain)


@pytest.mark.parametrize(("of_loop", "expected"), [(False, 1.5 / 1.25), (True, 1.5)])
def test_a_gain_is_one_of_steps_and_rollouts_together(of_loop: bool, expected: float) -> None:
    """Fused, Adam took a third of a PPO's update less; half of its loop are rollouts, and `tune` measured 1.05x."""
    acting = with_parts(rollout_s=9.0)  # as long as all steps
    assert acting.step is not None
    cost = Cost(1 / 3, 0.2, 0.4, acting.step.whole_s * (2.0 if of_loop else 1.0))
    symptom = Symptom(evidence="seen", cost=cost, gain=cost.gain(), by_hand=True)
    rule = dataclasses.replace(all_rules()[0], check=lambda _: [symptom], explains=())
    (finding,) = diagnose(acting, rules=[rule]).findings
    assert finding.gain is not None
    assert finding.gain.ratio == pytest.approx(expected)
