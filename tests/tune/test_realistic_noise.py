"""Whole sessions on step times as real machines gave them: heavy tails, drift over seconds, processes that differ."""

from __future__ import annotations

from statistics import fmean, median

import numpy as np
import pytest

from hotloop.model.tuning import TuneResult

from ..stats.recorded import RecordedMachine
from .sessions import Simulation, names
from .simulated import Disturbance, Truth, candidates

NUM_SESSIONS = 20
KNOBS = ("bf16", "layout", "null1", "null2")
ARMS = ("allocator", "null3", "null4")
TRUTH = Truth(factors={"bf16": 1.3, "allocator": 1.15}, together={frozenset({"bf16", "layout"}): 1.1})


class Recorded(Disturbance):
    """A machine that disturbs steps as it did when it was recorded."""

    def __init__(self, seed: int, program: str, condition: str) -> None:
        self._machine = RecordedMachine(np.random.default_rng(seed), program, condition)

    def process(self) -> float:
        return self._machine.process()

    def turns(self, num: int, steps: int) -> list[float]:
        return [fmean(self._machine.steps(steps)) for _ in range(num)]

    def hold(self, steps: int) -> list[float]:
        return [float(value) for value in self._machine.steps(steps)]


def session(truth: Truth, seed: int, program: str, condition: str, budget_s: float = 240.0) -> TuneResult:
    session = Simulation(
        truth,
        seed=seed,
        budget_s=budget_s,
        disturbance=Recorded(seed, program, condition),
        switchable=lambda one: one.name in KNOBS,
        interactions={"layout": frozenset({"bf16"})},
    )
    return session.run(candidates(*KNOBS, *ARMS))


@pytest.mark.parametrize(
    ("program", "condition"),
    [
        pytest.param("gan", "quiet", marks=pytest.mark.slow),
        pytest.param("vae", "quiet", marks=pytest.mark.slow),
        pytest.param("mlp with loader", "busy, passive", marks=pytest.mark.slow),
        pytest.param("gan", "busy, passive", marks=pytest.mark.slow),
    ],
)
def test_a_large_gain_is_proven_within_four_minutes(program: str, condition: str) -> None:
    results = [session(TRUTH, seed, program, condition) for seed in range(NUM_SESSIONS)]
    proven = [result for result in results if "bf16" in names(result)]
    assert len(proven) >= 0.75 * NUM_SESSIONS
    assert max(result.wall_s for result in results) < 1.1 * 240.0
    claimed = [step.name for result in results for step in result.plan.steps if step.proven]
    # Of 100 nulls at 1% each three or more have a chance of one in twelve.
    assert sum(name.startswith("null") for name in claimed) <= 2
    shares = [result.plan.speedup.ratio / (1.3 * 1.1 * 1.15) for result in proven if result.plan.speedup]
    assert median(shares) > 0.8


@pytest.mark.parametrize("condition", [pytest.param("quiet", marks=pytest.mark.slow), "busy, passive"])
def test_nothing_is_claimed_where_nothing_helps(condition: str) -> None:
    programs = ("gan", "vae", "mlp with loader", "transformer")
    results = [
        session(Truth(), seed, program, condition)
        for program in programs
        for seed in range(NUM_SESSIONS // 4)
    ]
    assert [names(result) for result in results if result.plan.steps] == []
