"""The floor of a machine."""

import math

import numpy as np
import pytest

from hotloop.stats.floor import MIN_FLOOR, aa_floor, pair_spread

from .simulated import Noise, simulated_pairs


def pairs(pair_sd: float, num: int, seed: int = 0, bias: float = 0.0) -> list[list[float]]:
    return simulated_pairs(np.random.default_rng(seed), Noise(pair_sd, 0.005, 0.2, 0.0), bias, num)


def test_a_noisy_machine_has_the_higher_floor() -> None:
    assert aa_floor(pairs(0.05, 8)) > aa_floor(pairs(0.02, 8)) > aa_floor(pairs(0.002, 8))


def test_the_floor_has_a_lower_bound() -> None:
    assert aa_floor([[0.0, 1e-6, -1e-6, 0.0]] * 200) == MIN_FLOOR


def test_without_pairs_the_floor_is_the_usual_one() -> None:
    assert MIN_FLOOR < aa_floor([]) < 0.02


def test_the_floor_is_the_error_of_the_shortest_verdict() -> None:
    floors = [aa_floor(pairs(0.03, 50, seed)) for seed in range(10)]
    assert np.median(floors) == pytest.approx(0.03 / math.sqrt(3), rel=0.1)


def test_a_bias_of_the_harness_is_in_the_floor() -> None:
    assert aa_floor(pairs(0.002, 12, bias=0.04)) > 0.03


def test_one_wild_pair_does_not_make_the_floor() -> None:
    calm = pairs(0.01, 7)
    assert aa_floor([*calm, [0.8] * 8]) < 2.5 * aa_floor(calm)


def test_the_sides_are_alike() -> None:
    seen = pairs(0.01, 5, bias=0.03)
    assert aa_floor([[-value for value in blocks] for blocks in seen]) == pytest.approx(aa_floor(seen))


def test_spread_starts_at_the_usual_one_and_learns() -> None:
    assert pair_spread([]).sd == pytest.approx(0.02)
    assert pair_spread(pairs(0.003, 8)).sd < 0.012
    assert pair_spread(pairs(0.05, 8)).sd > 0.03
    assert pair_spread(pairs(0.003, 3)).df == 5
