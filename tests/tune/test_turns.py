"""From turns to blocks: an evaluation between steps is no step."""

from __future__ import annotations

import math

import pytest

from hotloop.tune.trials.turns import OVERRUN, Turn, block_times, is_late, undisturbed

PLAIN = [Turn(0.03), Turn(0.04), Turn(0.05)]


def test_a_block_is_the_mean_or_the_median_of_its_turns() -> None:
    turns = {0: PLAIN, 2: [Turn(0.01), Turn(0.01), Turn(0.04)]}
    assert block_times(turns, typical=False, trains=True) == pytest.approx({0: 0.04, 2: 0.02})
    assert block_times(turns, typical=True, trains=True) == pytest.approx({0: 0.04, 2: 0.01})


def test_a_turn_in_which_one_arm_evaluated_is_left_out_of_all() -> None:
    turns = {0: [Turn(0.03), Turn(0.04), Turn(0.5, interrupted=True)], 1: PLAIN}
    assert block_times(turns, typical=False, trains=True) == pytest.approx({0: 0.035, 1: 0.035})


def test_where_every_turn_evaluates_all_count_and_the_round_says_little() -> None:
    turns = {0: [Turn(0.03, interrupted=True), Turn(0.05, interrupted=True)]}
    assert undisturbed(turns) == []
    assert block_times(turns, typical=False, trains=True) == pytest.approx({0: 0.04})


def test_where_evaluation_is_part_of_the_step_nothing_is_left_out() -> None:
    turns = {0: [Turn(0.03), Turn(0.05, interrupted=True)]}
    assert block_times(turns, typical=False, trains=False) == pytest.approx({0: 0.04})


def test_an_arm_that_failed_has_no_time() -> None:
    times = block_times({0: PLAIN, 1: [Turn(math.nan)] * 3}, typical=True, trains=True)
    assert times[0] == 0.04
    assert math.isnan(times[1])


def test_a_block_that_others_make_far_longer_ends_after_as_many_turns_forwards_as_backwards() -> None:
    late_s = OVERRUN * 6.0 + 0.1
    assert [is_late(num, late_s, 6.0) for num in range(1, 6)] == [False, True, False, True, False]
    assert not any(is_late(num, OVERRUN * 6.0, 6.0) for num in range(1, 6))
