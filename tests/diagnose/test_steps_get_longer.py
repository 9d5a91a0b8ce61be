"""Steps that get longer because they have more to do are not slower."""

from __future__ import annotations

import math

import msgspec
import pytest

from hotloop.diagnose.check.engine import diagnose
from hotloop.diagnose.rules.run.steps_get_longer import rule
from hotloop.model.finding import Finding
from hotloop.model.observation import Observation
from hotloop.model.program import ModuleFacts

from .watched_cases import with_series

_LONGER = [0.05 + 0.001 * at for at in range(96)]
_SQUARE = [0.05 + 0.00001 * at**2 for at in range(96)]
_MORE = [20.0 + 0.4 * at for at in range(96)]


def _found(observation: Observation) -> tuple[Finding, ...]:
    return diagnose(observation, rules=[rule]).findings


@pytest.mark.parametrize("what", ["calls", "samples", "tokens"])
def test_steps_with_more_to_do_may_take_longer(what: str) -> None:
    assert _found(with_series(_LONGER, **{what: _MORE})) == ()
    assert _found(with_series(_SQUARE, **{what: _MORE})) == ()


def test_steps_that_were_only_counted_say_nothing_of_the_work() -> None:
    seen = [math.nan if at % 4 else value for at, value in enumerate(_MORE)]
    assert _found(with_series(_LONGER, tokens=seen)) == ()


def test_what_grows_faster_than_the_work_costs_the_rest() -> None:
    (alone,) = _found(with_series(_LONGER, tokens=[20.0] * 96))
    (partly,) = _found(with_series(_LONGER, tokens=[20.0 + 0.03 * at for at in range(96)]))
    assert alone.cost_s is not None
    assert partly.cost_s is not None
    assert 0 < partly.cost_s < alone.cost_s


def test_where_shapes_vary_and_sizes_are_unknown_nobody_can_tell() -> None:
    seen = with_series(_LONGER, samples=[8.0] * 96)
    varying = msgspec.structs.replace(seen.program, roots=(ModuleFacts(cls="Net", shapes_vary=True),))
    assert len(_found(seen)) == 1
    assert _found(msgspec.structs.replace(seen, program=varying)) == ()
