"""One limit says from which share of the CPU others disturb."""

from __future__ import annotations

from hotloop.probe.control.contention import MAX_SHARE
from hotloop.stats.quietness import BUSY, is_busy, is_too_busy


def test_the_program_has_the_same_limit_inside() -> None:
    assert MAX_SHARE == BUSY


def test_a_share_that_is_not_known_disturbs_nothing() -> None:
    assert not is_busy(None)
    assert not is_too_busy(None)
    assert not is_busy(BUSY)
    assert is_busy(2 * BUSY)
