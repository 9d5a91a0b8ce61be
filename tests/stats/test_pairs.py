"""The ratio of pairs and its interval."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.pairs import ratio_interval

from .simulated import Noise, simulated_pair, simulated_pairs

LOG_RATIO = st.integers(-2000, 2000).map(lambda thousandths: thousandths / 1000)
BLOCKS = st.lists(LOG_RATIO, min_size=3, max_size=12)
PAIRS = st.lists(BLOCKS, min_size=1, max_size=8)


@given(PAIRS)
def test_the_interval_holds_the_ratio(pairs: list[list[float]]) -> None:
    seen = ratio_interval(pairs)
    assert 0 < seen.low <= seen.ratio <= seen.high < math.inf


@given(PAIRS)
def test_swapping_the_arms_inverts_the_ratio(pairs: list[list[float]]) -> None:
    seen = ratio_interval(pairs)
    swapped = ratio_interval([[-value for value in blocks] for blocks in pairs])
    assert swapped.ratio == pytest.approx(1 / seen.ratio)
    assert swapped.low == pytest.approx(1 / seen.high)
    assert swapped.high == pytest.approx(1 / seen.low)


@given(PAIRS)
def test_the_order_of_pairs_does_not_matter(pairs: list[list[float]]) -> None:
    seen, turned = ratio_interval(pairs), ratio_interval(pairs[::-1])
    assert (turned.ratio, turned.low, turned.high) == pytest.approx((seen.ratio, seen.low, seen.high))


@given(PAIRS, LOG_RATIO)
def test_a_faster_candidate_shifts_the_interval_by_as_much(pairs: list[list[float]], shift: float) -> None:
    seen = ratio_interval(pairs)
    shifted = ratio_interval([[value + shift for value in blocks] for blocks in pairs])
    assert shifted.ratio == pytest.approx(seen.ratio * math.exp(shift), rel=1e-6)
    assert shifted.high / shifted.low == pytest.approx(seen.high / seen.low, rel=1e-6)


def test_one_pair_has_a_wide_interval_however_calm_its_blocks() -> None:
    seen = ratio_interval([[0.05, 0.0501, 0.0499, 0.05] * 3])
    assert seen.ratio == pytest.approx(math.exp(0.05), rel=1e-3)
    assert seen.low < 1.0
    assert seen.high > 1.1


def test_more_pairs_narrow_the_interval() -> None:
    pairs = simulated_pairs(np.random.default_rng(0), Noise(0.01, 0.01, 0.3), 0.1, 8)
    few, many = ratio_interval(pairs[:3]), ratio_interval(pairs)
    assert many.high / many.low < few.high / few.low


def test_a_spike_hardly_moves_the_ratio() -> None:
    calm = [[0.2, 0.21, 0.19, 0.2, 0.205, 0.195, 0.2, 0.2]] * 3
    hit = [[*calm[0][:7], -1.5], *calm[1:]]
    assert ratio_interval(hit).ratio == pytest.approx(ratio_interval(calm).ratio, rel=2e-3)


def test_dependent_blocks_say_less_than_shuffled_ones() -> None:
    trend = [0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09]
    mixed = [0.0, 0.09, 0.03, 0.06, 0.01, 0.08, 0.04, 0.05, 0.02, 0.07]
    wide, narrow = ratio_interval([trend], prior_sd=1e-4), ratio_interval([mixed], prior_sd=1e-4)
    assert wide.high / wide.low > narrow.high / narrow.low


@pytest.mark.parametrize("pair_sd", [0.005, 0.02])
def test_the_interval_of_three_pairs_covers_the_truth(pair_sd: float) -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(300):
        seen = ratio_interval(simulated_pairs(rng, Noise(pair_sd, 0.02, 0.6), 0.1, 3))
        hits += seen.low <= math.exp(0.1) <= seen.high
    assert hits >= 0.95 * 300


@pytest.mark.parametrize(("num", "share"), [(3, 0.3), (4, 0.3), (8, 0.3), (8, 0.6)])
def test_pairs_beside_neighbours_count_less_and_the_interval_still_holds(num: int, share: float) -> None:
    """Neighbours make some of them scatter twenty times as much."""
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        disturbed = np.flatnonzero(rng.random(num) < share).tolist()
        noises = [Noise(0.01, 0.4 if number in disturbed else 0.02, 0.3) for number in range(num)]
        pairs = [simulated_pair(rng, noise, 0.1) for noise in noises]
        seen = ratio_interval(pairs, disturbed=disturbed)
        hits += seen.low <= math.exp(0.1) <= seen.high
    assert hits >= 0.95 * 200


def test_two_disturbed_pairs_among_five_hardly_widen_the_interval() -> None:
    rng = np.random.default_rng(8)
    calm = simulated_pairs(rng, Noise(0.01, 0.02, 0.3), 0.1, 3)
    wild = simulated_pairs(rng, Noise(0.01, 0.6, 0.3), 0.1, 2)
    alone, beside = ratio_interval(calm), ratio_interval([*wild, *calm], disturbed=(0, 1))
    assert math.log(beside.high / beside.low) < 1.3 * math.log(alone.high / alone.low)


def test_a_candidate_that_is_slow_now_and_then_is_not_called_fast_for_it() -> None:
    """Scatter of its own making counts in full, whatever it does to the interval."""
    calm, slow = [[0.14, 0.15, 0.13, 0.14]] * 3, [[-0.6, 0.2, -0.5, 0.1]] * 2
    assert ratio_interval([*calm, *slow]).ratio == pytest.approx(math.exp((3 * 0.14 - 2 * 0.2) / 5))
    calm_and_beside = ratio_interval([*calm, *slow], disturbed=(3, 4))
    assert calm_and_beside.ratio > ratio_interval([*calm, *slow]).ratio


@pytest.mark.parametrize("pairs", [[], [[0.1, 0.2]], [[0.1, 0.2, math.nan]], [[0.1, 0.2, math.inf]]])
def test_what_is_no_measurement_is_refused(pairs: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="pair"):
        ratio_interval(pairs)
