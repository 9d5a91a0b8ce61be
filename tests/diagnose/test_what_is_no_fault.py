"""Programs that look like a fault and have none."""

from __future__ import annotations

import msgspec

from hotloop.diagnose.check.engine import diagnose
from hotloop.model.observation import Observation

from .observations import with_parts, with_program
from .test_rules import CASES
from .watched_cases import WATCHED, operator, with_operators


def codes(observation: Observation) -> set[str]:
    return {one.code for one in diagnose(observation).findings}


def test_episodes_get_longer_where_a_policy_learns() -> None:
    growing = WATCHED["steps-get-longer"]
    assert "steps-get-longer" in codes(growing)
    assert "steps-get-longer" not in codes(with_program(growing, simulators=("gymnasium",)))
    assert "steps-get-longer" not in codes(with_parts(growing, rollout_s=3.0))


def test_float64_costs_nothing_where_operators_are_short() -> None:
    wide = CASES["double-precision"]
    short = with_operators(operator("aten::addmm", 1.0, count=10_000.0))
    tiny = msgspec.structs.replace(wide, deep=short.deep)
    found = {one.code: one for one in diagnose(tiny).findings}
    assert "double-precision" in codes(wide)
    gain = found["double-precision"].gain if "double-precision" in found else None
    assert gain is None or gain.ratio < 1.01
