"""What a gate shows and what it says are one."""

from __future__ import annotations

import pytest

from hotloop.stats.gate import slowdown, typical_s


def test_the_times_that_are_shown_have_the_quotient_that_is_said() -> None:
    """Medians of medians, 929 over 892 us, stood beside 1.48 times."""
    before = [[892e-6] * 9, [500e-6] * 9, [893e-6] * 9]
    now = [[929e-6] * 9, [920e-6] * 9, [1500e-6] * 9]
    assert typical_s(now) / typical_s(before) == pytest.approx(slowdown(before, now).ratio)
