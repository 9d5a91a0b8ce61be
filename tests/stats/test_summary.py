"""Summaries of step times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.stats.summary import summarize

from .test_robust import ar1

STEPS = st.lists(st.floats(1e-4, 1e3), min_size=1, max_size=60)


def test_percentiles_of_known_data() -> None:
    seen = summarize([float(value) for value in range(1, 101)])
    assert (seen.num, seen.median_s, seen.p50_s) == (100, 50.5, 50.5)
    assert seen.p95_s == pytest.approx(95.05)
    assert seen.p99_s == pytest.approx(99.01)


@given(STEPS)
def test_the_interval_holds_the_median(steps: list[float]) -> None:
    seen = summarize(steps)
    assert min(steps) <= seen.low_s <= seen.median_s <= seen.high_s <= max(steps)


@given(STEPS, st.sampled_from([0.25, 2.0, 1024.0]))
def test_units_do_not_matter(steps: list[float], factor: float) -> None:
    plain, scaled = summarize(steps), summarize([value * factor for value in steps])
    assert scaled.low_s == pytest.approx(plain.low_s * factor)
    assert scaled.high_s == pytest.approx(plain.high_s * factor)


def test_independent_steps_have_the_order_statistic_interval() -> None:
    steps = np.random.default_rng(0).normal(1, 0.1, 1000)
    seen = summarize(list(steps))
    # sd of a median: sqrt(pi / 2) * 0.1 / sqrt(1000), twice 1.96 of it
    assert seen.high_s - seen.low_s == pytest.approx(2 * 1.96 * 1.2533 * 0.1 / 1000**0.5, rel=0.35)


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_the_interval_covers_also_dependent_steps(rho: float) -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        seen = summarize(list(1 + 0.1 * ar1(rng, 300, rho)))
        hits += seen.low_s <= 1.0 <= seen.high_s
    assert hits >= 0.9 * 300


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")]])
def test_nothing_to_summarize(samples: list[float]) -> None:
    with pytest.raises(ValueError, match="finite samples"):
        summarize(samples)
