"""What sets are expected to take."""

from __future__ import annotations

import math

import msgspec
import pytest

from hotloop.model.observation import RunAccount
from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Contention, Failure, FailureKind
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.design.costs import Costs, expected_costs
from hotloop.tune.executor import ArmRecord, SetOrder, SetRecord

from .simulated import STEP_S, observation

EPOCH = 20
_PARTS = {"import_s": 3.0, "step_forward_s": 12.0, "evaluation_s": 8.0, "after_training_s": 2.0}
_RUN = RunAccount(wall_s=25.0, parts=_PARTS, num_steps=100)
ON_THE_CLOCK_S = 20.0 / 100


def _blocks(num_steps: int) -> Blocks:
    return Blocks(num_steps=num_steps, discard=0, warm_steps=10, max_rounds=None)


def test_start_up_is_what_comes_before_the_second_step() -> None:
    seen = msgspec.structs.replace(observation(), run=_RUN, epoch_steps=EPOCH)
    assert expected_costs(seen, _blocks(7)).start_s(1) == pytest.approx(3.0 + 10 * ON_THE_CLOCK_S, rel=0.02)


def test_arms_start_together_and_warm_up_one_after_the_other() -> None:
    costs = Costs(start_s=4.0, round_s=1.0, num_cores=2, warm_s=3.0)
    assert costs.start_s(1) == pytest.approx(7.0)
    assert costs.start_s(2) == pytest.approx(4.0 + 6.0)
    assert costs.start_s(4) == pytest.approx(8.0 + 12.0)


def test_a_step_costs_what_it_takes_on_the_clock_with_what_comes_between_steps() -> None:
    seen = msgspec.structs.replace(observation(), run=_RUN, epoch_steps=EPOCH)
    turns = expected_costs(seen, _blocks(7)).set_s(1, 1) - expected_costs(seen, _blocks(7)).start_s(1)
    whole = expected_costs(seen, _blocks(EPOCH)).set_s(1, 1) - expected_costs(seen, _blocks(EPOCH)).start_s(1)
    assert turns == pytest.approx(7 * ON_THE_CLOCK_S, rel=0.03)
    assert whole == pytest.approx(EPOCH * ON_THE_CLOCK_S, rel=0.02)


def test_an_epoch_that_was_not_seen_whole_says_nothing_of_its_end() -> None:
    short = msgspec.structs.replace(_RUN, num_steps=EPOCH - 1)
    seen = msgspec.structs.replace(observation(), run=short, epoch_steps=EPOCH)
    costs = expected_costs(seen, _blocks(EPOCH))
    assert costs.set_s(1, 1) - costs.start_s(1) == pytest.approx(EPOCH * STEP_S, rel=0.05)


def test_waiting_for_what_did_not_start_is_no_cost_of_other_sets() -> None:
    costs = Costs(start_s=10.0, round_s=1.0, num_cores=1)
    usual = costs.set_s(2, 5)
    late = Failure(kind=FailureKind.LATE, message="it was not warm")
    record = SetRecord(
        rounds=(),
        arms=(ArmRecord(step_s=math.nan), late),
        contention=Contention(num_blocks=0, num_void=0),
        start_s=180.0,
    )
    slow, quick = Candidate(name="compile", one_off_s=45.0), Candidate(name="huge_pages")
    costs.learn(SetOrder(plans=((), (slow,)), max_rounds=5), record, 182.0)
    assert costs.set_s(2, 5) == usual
    # What starts like the original and is late says that starts take long here.
    costs.learn(SetOrder(plans=((), (quick,)), max_rounds=5), record, 182.0)
    assert costs.set_s(2, 5) > 2 * usual


def test_a_set_that_takes_long_to_start_is_worth_more_rounds() -> None:
    """Starts of 10 s beside rounds of 1 s: with blocks that scatter twice as much as processes, 2 sqrt(20 / 2)."""
    quick, slow = Costs(start_s=0.1, round_s=1.0, num_cores=1), Costs(start_s=10.0, round_s=1.0, num_cores=1)
    assert slow.telling_rounds(2) == pytest.approx(2 * math.sqrt(10), abs=1)
    assert quick.telling_rounds(2) == 1


def test_an_arm_that_failed_alone_makes_no_other_set_longer() -> None:
    """Whole processes, one at a time: the candidate died after the original's half of the rounds."""
    costs = Costs(start_s=5.0, round_s=0.5, num_cores=1)
    usual = costs.set_s(2, 5)
    failed = Failure(kind=FailureKind.OUT_OF_MEMORY, message="out of memory")
    record = SetRecord(
        rounds=(), arms=(ArmRecord(step_s=math.nan), failed), contention=Contention(num_blocks=0, num_void=0)
    )
    costs.learn(SetOrder(plans=((), (Candidate(name="huge_pages"),)), max_rounds=5), record, 40.0)
    assert costs.set_s(2, 5) == usual
