"""Pairs of neighbours as one set."""

from __future__ import annotations

import pytest

from hotloop.model.tuning import Contention
from hotloop.tune.executor import ArmRecord, SetRecord
from hotloop.tune.verdict.chained_sets import linked


def _pair(*rounds: tuple[float, float], peak: int) -> SetRecord:
    arms = (ArmRecord(step_s=rounds[0][0], peak_bytes=0), ArmRecord(step_s=rounds[0][1], peak_bytes=peak))
    return SetRecord(
        rounds=rounds,
        arms=arms,
        contention=Contention(num_blocks=2, num_void=1, max_foreign_share=peak / 100),
    )


def test_ratios_are_kept_and_their_product_is_the_whole() -> None:
    first = _pair((1.2, 1.0), (1.3, 1.0), peak=5)
    second = _pair((4.0, 2.0), (3.0, 2.0), (9.0, 9.0), peak=7)
    whole = linked([first, second])
    assert whole.log_ratios(0, 1) == pytest.approx(first.log_ratios(0, 1))
    assert whole.log_ratios(1, 2) == pytest.approx(second.log_ratios(0, 1)[:2])
    assert whole.rounds[0] == pytest.approx((1.2, 1.0, 0.5))
    assert [arm.peak_bytes for arm in whole.arms] == [0, 5, 7]
    assert whole.contention == Contention(num_blocks=4, num_void=2, max_foreign_share=0.07)
