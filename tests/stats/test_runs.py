"""Ratios of runs that did not take turns, and the gate that rests on them."""

from __future__ import annotations

import numpy as np
import pytest

from hotloop.stats.gate import is_proven_slower, slowdown
from hotloop.stats.runs import run_of_interval, run_of_steps, runs_ratio

STEPS = 200
PROCESS_SD = 0.02 / 2**0.5
"""So that pairs differ by 2%."""


def _runs(draw: np.random.Generator, num: int, true_s: float, sd: float = PROCESS_SD) -> list[list[float]]:
    return [(true_s * np.exp(draw.normal(0, sd) + draw.normal(0, 0.1, STEPS))).tolist() for _ in range(num)]


def test_one_run_each_settles_no_few_per_cent() -> None:
    ratio = runs_ratio([run_of_steps([1.05] * 500)], [run_of_steps([1.0] * 500)])
    assert ratio.ratio == pytest.approx(1.05)
    assert ratio.low < 1


def test_a_gate_never_fails_on_noise_and_sees_a_real_slowdown() -> None:
    draw = np.random.default_rng(3)
    same = [slowdown(_runs(draw, 3, 0.1), _runs(draw, 3, 0.1)) for _ in range(400)]
    assert not any(is_proven_slower(found, 0.05) for found in same)
    slower = [slowdown(_runs(draw, 3, 0.1), _runs(draw, 3, 0.12)) for _ in range(200)]
    assert sum(is_proven_slower(found, 0.05) for found in slower) > 190


def test_at_the_margin_itself_chance_fails_one_in_a_hundred() -> None:
    draw = np.random.default_rng(4)
    edge = [slowdown(_runs(draw, 3, 0.1), _runs(draw, 3, 0.105)) for _ in range(600)]
    assert sum(is_proven_slower(found, 0.05) for found in edge) <= 12


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        run_of_interval(bad, bad, bad)
