"""What float64 costs: arithmetic on many numbers, not the calls of operators on few."""

from __future__ import annotations

import msgspec

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.rules.compute.double_precision import rule
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from hotloop.model.program import ModuleFacts

from .observations import FINE
from .watched_cases import operator, with_operators

_WIDE = ModuleFacts(cls="Net", num_parameters=10, dtypes=("float64",))


def _found(observation: Observation, *roots: ModuleFacts) -> tuple[Finding, ...]:
    program = msgspec.structs.replace(observation.program, roots=roots)
    return diagnose(msgspec.structs.replace(observation, program=program), rules=[rule]).findings


def test_long_operators_take_half_as_long() -> None:
    (finding,) = _found(with_operators(operator("aten::addmm", 0.8, count=10.0)), _WIDE)
    assert finding.gain is not None
    assert finding.gain.ratio > 1.5


def test_calls_of_short_operators_cost_the_same_in_both_precisions() -> None:
    short = operator("aten::addmm", 0.8, count=0.08 / 4e-6)
    assert _found(with_operators(short, num=20_000.0), _WIDE) == ()


def test_a_parameter_in_float64_does_not_make_the_whole_model_compute_in_it() -> None:
    mixed = msgspec.structs.replace(_WIDE, dtypes=("float32", "float64"))
    assert _found(with_operators(operator("aten::addmm", 0.8)), mixed) == ()


def test_no_gain_is_told_where_operators_were_not_seen() -> None:
    (finding,) = _found(FINE, _WIDE)
    assert finding.gain is None
