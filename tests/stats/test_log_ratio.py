"""Ratios stay numbers however wide their interval is."""

from __future__ import annotations

import math

import pytest

from hotloop.model.ratio import Ratio
from hotloop.stats.log_ratio import half_width, ratio_of
from hotloop.stats.switching import SwitchFit


def test_what_goes_in_comes_out() -> None:
    ratio = ratio_of(math.log(2), math.log(1.5))
    assert (ratio.ratio, ratio.low, ratio.high) == pytest.approx((2.0, 2 / 1.5, 3.0))
    assert half_width(ratio) == pytest.approx(math.log(1.5))


@pytest.mark.parametrize("half", [800.0, 1e9, math.inf])
def test_an_interval_without_end_has_ends_that_are_numbers(half: float) -> None:
    ratio = ratio_of(0.1, half)
    assert 0 < ratio.low < ratio.ratio < ratio.high < math.inf
    assert math.isfinite(half_width(ratio))
    assert half_width(ratio) ** 2 < math.inf


def test_switches_that_tell_next_to_nothing_give_a_ratio() -> None:
    """Few holds of knobs that were on together leave errors that no exponential reaches."""
    fit = SwitchFit(terms=(("a",), ("b",)), gains=(0.2, -0.1), covariance=((1e12, 0.0), (0.0, 1e12)), df=3.0)
    ratio = fit.ratio(["a"])
    assert isinstance(ratio, Ratio)
    assert 0 < ratio.low < 1 < ratio.high < math.inf
