"""Verdicts: what may be claimed, and when to stop."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.verdict import Verdict, decide

from .simulated import num_verdicts, random_noise, simulated_pairs, simulated_session

PAIRS = st.lists(st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=10), min_size=1, max_size=8)
MIRROR = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


def calm(log_ratio: float, num: int) -> list[list[float]]:
    """Pairs with hardly any noise."""
    return [[log_ratio + step * 1e-3 for step in (0, 1, -1, 2, -2, 0, 1, -1)] for _ in range(num)]


def test_a_clear_gain_is_faster_after_three_pairs() -> None:
    decision = decide(calm(math.log(1.5), 3), floor=0.01)
    assert decision.verdict is Verdict.FASTER
    assert not decision.more
    assert decision.ratio is not None
    assert decision.ratio.ratio == pytest.approx(1.5, rel=1e-3)


def test_a_clear_loss_is_slower() -> None:
    assert decide(calm(math.log(0.8), 3), floor=0.01).verdict is Verdict.SLOWER


@pytest.mark.parametrize("num", [1, 2])
def test_no_verdict_before_three_pairs(num: int) -> None:
    decision = decide(calm(math.log(2), num), floor=0.01)
    assert (decision.verdict, decision.more) == (Verdict.INCONCLUSIVE, True)
    assert "a verdict needs 3" in decision.reason


def test_equal_programs_on_a_quiet_machine_are_the_same() -> None:
    decision = decide(calm(0.0, 8), floor=0.01, prior_sd=0.003, prior_df=8)
    assert decision.verdict is Verdict.SAME


def test_a_difference_below_the_floor_is_not_claimed() -> None:
    pairs = calm(math.log(1.03), 8)
    assert decide(pairs, floor=0.005, prior_sd=0.003, prior_df=8).verdict is Verdict.FASTER
    assert decide(pairs, floor=0.05, prior_sd=0.003, prior_df=8).verdict is Verdict.SAME


def test_one_percent_is_never_claimed_however_quiet() -> None:
    decision = decide(calm(math.log(1.009), 8), floor=0.0, prior_sd=1e-4, prior_df=50)
    assert decision.verdict is not Verdict.FASTER


def test_asks_for_more_while_a_gain_is_in_sight() -> None:
    rng = np.random.default_rng(0)
    pairs = [[0.04 + offset + rng.normal(0, 0.02) for _ in range(8)] for offset in (-0.03, 0.0, 0.03)]
    decision = decide(pairs, floor=0.01)
    assert (decision.verdict, decision.more) == (Verdict.INCONCLUSIVE, True)
    assert not decide(pairs, floor=0.01, max_pairs=3).more


def test_does_not_ask_for_more_when_nothing_is_in_sight() -> None:
    rng = np.random.default_rng(0)
    pairs = [[offset + rng.normal(0, 0.01) for _ in range(8)] for offset in (-0.015, 0.0, 0.015)]
    decision = decide(pairs, floor=0.01)
    assert (decision.verdict, decision.more) == (Verdict.INCONCLUSIVE, False)
    assert "more pairs would hardly settle it" in decision.reason


@pytest.mark.parametrize("pairs", [[], [[0.1, 0.1]], [[0.1, 0.1, math.nan]] * 3, [[math.inf] * 8] * 3])
def test_what_cannot_be_compared_is_invalid(pairs: list[list[float]]) -> None:
    decision = decide(pairs, floor=0.01)
    assert decision.verdict is Verdict.INVALID
    assert decision.ratio is None
    assert not decision.more
    assert decision.reason


@given(PAIRS)
def test_swapping_the_arms_mirrors_the_verdict(pairs: list[list[float]]) -> None:
    decision = decide(pairs, floor=0.012)
    swapped = decide([[-value for value in blocks] for blocks in pairs], floor=0.012)
    assert swapped.verdict is MIRROR.get(decision.verdict, decision.verdict)
    assert swapped.more == decision.more


@given(PAIRS)
def test_the_interval_at_a_look_is_wider_than_a_plain_one(pairs: list[list[float]]) -> None:
    decision, single = decide(pairs, floor=0.0), decide(pairs, floor=0.0, min_pairs=8)
    assert decision.ratio is not None
    assert single.ratio is not None
    assert decision.ratio.low <= single.ratio.low * (1 + 1e-12)
    assert decision.more <= (len(pairs) < 8)


@pytest.mark.parametrize("neighbours", [0.0, 0.3])
def test_equal_programs_are_hardly_ever_called_faster(neighbours: float) -> None:
    rng = np.random.default_rng(10)
    seen = [simulated_session(rng, random_noise(rng), 1.0, neighbours=neighbours)[0] for _ in range(100)]
    found = num_verdicts(seen)
    assert found.get("faster", 0) <= 1
    assert found.get("slower", 0) <= 1


def test_clean_pairs_to_come_are_not_given_up_for_disturbed_ones() -> None:
    pairs = [[0.03, 0.05, 0.04, 0.03], [0.05, 0.04, 0.03, 0.05], [-0.9, 0.8, 0.9, -0.5]]
    assert not decide(pairs, floor=0.01).more
    assert decide(pairs, floor=0.01, disturbed=(2,)).more


def test_a_large_gain_is_found_although_a_third_of_its_pairs_have_neighbours() -> None:
    rng = np.random.default_rng(13)
    seen = [simulated_session(rng, random_noise(rng), 1.3, neighbours=0.3)[0] for _ in range(100)]
    assert num_verdicts(seen)["faster"] >= 90


@pytest.mark.parametrize("pair_sd", [None, 0.02])
def test_five_percent_is_found(pair_sd: float | None) -> None:
    rng = np.random.default_rng(11)
    found = num_verdicts([simulated_session(rng, random_noise(rng, pair_sd), 1.05)[0] for _ in range(100)])
    assert found["faster"] >= 80


def test_intervals_hold_at_all_looks_together() -> None:
    rng = np.random.default_rng(12)
    misses = 0
    for _ in range(150):
        pairs = simulated_pairs(rng, random_noise(rng), math.log(1.2), 8)
        seen = [decide(pairs[:num], floor=0.01).ratio for num in range(3, 9)]
        misses += any(r is not None and not r.low <= 1.2 <= r.high for r in seen)
    assert misses <= 0.05 * 150
