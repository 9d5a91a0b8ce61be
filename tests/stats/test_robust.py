"""Locations, scales and autocorrelation."""

import numpy as np
import pytest

from hotloop.stats.autocorrelation import effective_num, lag_one
from hotloop.stats.robust import hodges_lehmann, mad_sd, winsorized


def ar1(rng: np.random.Generator, num: int, rho: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    series = np.zeros(num)
    for index in range(1, num):
        series[index] = rho * series[index - 1] + rng.normal() * np.sqrt(1 - rho**2)
    return series


def test_a_wild_value_moves_the_location_little() -> None:
    calm = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02, 0.98]
    assert hodges_lehmann([*calm, 50.0]) == pytest.approx(hodges_lehmann(calm), abs=0.03)


def test_location_of_symmetric_data_is_its_center() -> None:
    assert hodges_lehmann([1.0, 2.0, 3.0]) == 2.0


def test_mad_is_the_sd_of_normal_data() -> None:
    assert mad_sd(np.random.default_rng(0).normal(0, 2, 20_000)) == pytest.approx(2.0, rel=0.03)


def test_winsorizing_brings_in_the_wild_value_only() -> None:
    data = [1.0, 1.1, 0.9, 1.05, 0.95, 50.0]
    tame = winsorized(data)
    assert list(tame[:5]) == data[:5]
    assert tame[5] < 1.5


def test_winsorizing_leaves_mostly_equal_values_alone() -> None:
    assert list(winsorized([1.0, 1.0, 1.0, 7.0])) == [1.0, 1.0, 1.0, 7.0]


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_short_series_give_their_autocorrelation_on_average(rho: float) -> None:
    rng = np.random.default_rng(1)
    found = np.mean([lag_one(ar1(rng, 40, rho)) for _ in range(300)])
    # Negative estimates count as 0, so independent data come out a little above.
    assert rho - 0.05 < found < rho + 0.12


def test_effective_number_of_a_dependent_series() -> None:
    rng = np.random.default_rng(2)
    found = np.mean([effective_num(ar1(rng, 1000, 0.6)) for _ in range(30)])
    assert found == pytest.approx(1000 * 0.4 / 1.6, rel=0.15)


def test_a_constant_series_counts_in_full() -> None:
    assert effective_num(np.ones(10)) == 10
    assert lag_one(np.ones(10)) == 0
