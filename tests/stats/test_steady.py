"""Where warm-up ends, and where a series changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.steady import steady_from


def noisy(levels: list[tuple[int, float]], seed: int = 0) -> list[float]:
    """A series of levels, each (length, level), with 3% noise."""
    rng = np.random.default_rng(seed)
    clean = np.concatenate([np.full(num, level) for num, level in levels])
    return [float(value) for value in clean * (1 + 0.03 * rng.normal(size=len(clean)))]


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_start_is_left_out(seed: int) -> None:
    assert 18 <= steady_from(noisy([(18, 2.0), (120, 1.0)], seed)) <= 30


@pytest.mark.parametrize("seed", range(5))
def test_a_fast_start_is_left_out(seed: int) -> None:
    # A loader's pre-filled queue makes the first steps faster than the rest.
    assert 18 <= steady_from(noisy([(18, 0.6), (120, 1.0)], seed)) <= 30


def test_a_warm_up_that_fades_is_mostly_left_out() -> None:
    steps = np.arange(200)
    series = (1 + 2 * np.exp(-steps / 10)) * (1 + 0.02 * np.random.default_rng(0).normal(size=200))
    assert 25 <= steady_from(list(series)) <= 60


def test_a_single_first_step_is_left_out_of_a_short_series() -> None:
    assert 1 <= steady_from([9.0, *noisy([(12, 1.0)])]) <= 3


def test_rare_long_events_are_no_warm_up() -> None:
    series = noisy([(200, 1.0)])
    for index in (40, 41, 90, 130):
        series[index] = 30.0
    assert steady_from(series) <= 25


@pytest.mark.parametrize("series", [[], [1.0], [1.0, 1.0], [1.0] * 50])
def test_series_without_a_warm_up_start_at_once(series: list[float]) -> None:
    assert steady_from(series) == 0


@given(st.lists(st.floats(1e-3, 1e3), max_size=80))
def test_at_most_half_is_left_out(series: list[float]) -> None:
    assert 0 <= steady_from(series) <= (len(series) + 1) // 2
