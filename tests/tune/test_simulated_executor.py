"""The simulated machine keeps the contract, and turns out the truth it was given."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import msgspec
import pytest

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Contention, FailureKind
from hotloop.tune.executor import SetOrder, SetRecord

from ..stats.simulated import Noise
from .executor_contract import ExecutorContract
from .simulated import (
    BLOCK_STEPS,
    DISCARD,
    QUIET,
    STARTUP_S,
    STEP_S,
    WARM_STEPS,
    Clock,
    SimulatedExecutor,
    Truth,
)

TRUTH = Truth(
    factors={"works": 1.5, "slow": 0.8},
    together={frozenset({"works", "slow"}): 1.1},
    failures={frozenset({"crashes"}): FailureKind.CRASH},
)


class TestSimulatedExecutor(ExecutorContract):
    works = Candidate(name="works")
    crashes = Candidate(name="crashes")

    def make(self) -> SimulatedExecutor:
        return SimulatedExecutor(TRUTH, QUIET, Clock())


def _ratios(noise: Noise, plan: tuple[Candidate, ...], seed: int = 0, rounds: int = 8) -> tuple[float, ...]:
    executor = SimulatedExecutor(TRUTH, noise, Clock(), seed)
    record = executor.run(SetOrder(plans=((), plan), max_rounds=rounds), lambda _: range(2))
    assert isinstance(record, SetRecord)
    return record.log_ratios((0,), 1)


def test_ratios_are_the_true_ones() -> None:
    both = (Candidate(name="works"), Candidate(name="slow"))
    assert math.exp(fmean(_ratios(QUIET, both[:1]))) == pytest.approx(1.5, rel=0.01)
    assert math.exp(fmean(_ratios(QUIET, both))) == pytest.approx(1.5 * 0.8 * 1.1, rel=0.01)


def test_pairs_differ_as_the_noise_says() -> None:
    noise = Noise(pair_sd=0.02, block_sd=0.001, rho=0.0, spike_share=0.0)
    means = [fmean(_ratios(noise, (), seed)) for seed in range(200)]
    assert stdev(means) == pytest.approx(0.02, rel=0.2)
    assert fmean(means) == pytest.approx(0.0, abs=0.005)


def test_the_clock_advances_by_what_the_runs_take() -> None:
    clock = Clock()
    began = clock()
    executor = SimulatedExecutor(TRUTH, QUIET, clock)
    executor.run(SetOrder(plans=((), ()), max_rounds=6), lambda _: range(2))
    expected = 2 * (STARTUP_S + STEP_S * (WARM_STEPS + 6 * (BLOCK_STEPS + DISCARD)))
    assert clock() - began == pytest.approx(expected, rel=0.01)


def test_rounds_that_say_little_of_the_step_are_left_out_while_others_say_more() -> None:
    quiet, far = (1.0, 0.5), (10.0, 12.0)
    record = SetRecord(
        rounds=(quiet, far, quiet, quiet, quiet),
        arms=(),
        contention=Contention(num_blocks=5, num_void=0),
        aside=(1,),
    )
    assert record.log_ratios((0,), 1) == (math.log(2),) * 4
    mostly = msgspec.structs.replace(record, aside=(0, 1, 2))
    assert len(mostly.log_ratios((0,), 1)) == 5
    rarely = msgspec.structs.replace(record, rounds=(quiet,) * 3 + (far,) * 8, aside=tuple(range(3, 11)))
    assert rarely.log_ratios((0,), 1) == (math.log(2),) * 3
