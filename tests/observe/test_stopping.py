"""When an observation has seen enough."""

from __future__ import annotations

import pytest

from hotloop.observe.run.stopping import FEW_STEPS, MIN_SECONDS, MIN_STEPS, PATIENCE, StopRule


@pytest.mark.parametrize("rule", [StopRule(), StopRule(seconds=3.0)])
def test_a_program_that_mostly_does_something_else_is_not_waited_for(rule: StopRule) -> None:
    patient_s = PATIENCE * rule.least_s
    assert rule.enough(MIN_STEPS, 0.1, patient_s)
    assert not rule.enough(MIN_STEPS, 0.1, 0.9 * patient_s)
    assert not rule.enough(MIN_STEPS - 1, 0.1, patient_s)


def test_a_default_observation_wants_steps_and_seconds() -> None:
    rule = StopRule()
    assert rule.enough(MIN_STEPS, MIN_SECONDS)
    assert not rule.enough(MIN_STEPS, 0.9 * MIN_SECONDS)
    assert not rule.enough(FEW_STEPS, MIN_SECONDS)
    assert rule.enough(FEW_STEPS, 60.0)


def test_steps_and_whole_runs_are_taken_at_their_word() -> None:
    assert not StopRule(steps=50).enough(49, 100.0, 1000.0)
    assert StopRule(steps=50).enough(50, 0.1)
    assert not StopRule(full=True).enough(1000, 1000.0, 1000.0)
