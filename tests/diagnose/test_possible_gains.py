"""A gain of more than the step holds is not told."""

from __future__ import annotations

import dataclasses

import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.check.registry import all_rules
from hotloop.diagnose.price.cost import Cost
from hotloop.diagnose.rule import Symptom
from hotloop.model.ratio import Ratio

from ..report.test_observation_screen import observation


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
