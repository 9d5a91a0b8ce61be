"""Figures as sentences say them."""

from __future__ import annotations

import pytest

from hotloop.model.ratio import Ratio
from hotloop.report.content.figures import as_fast, money


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0.0, "0.00"),
        (0.0119, "0.012"),
        (0.000004, "0.0000040"),
        (0.5, "0.50"),
        (12.345, "12.35"),
        (1e4, "10,000.00"),
    ],
)
def test_small_money_keeps_two_digits(amount: float, said: str) -> None:
    assert money(amount) == said


def test_a_speed_up_is_how_fast_never_how_much_faster() -> None:
    assert as_fast(Ratio(2.82, 2.71, 2.96)) == "2.82x as fast [2.71, 2.96]"
