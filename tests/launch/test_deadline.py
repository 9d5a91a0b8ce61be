"""One budget of time, shared by stages."""

from __future__ import annotations

import math

import pytest

from hotloop.launch.deadline import CLOSING_S, Deadline, endless

from ..observe.simulated_program import FakeClock


def test_what_is_left_keeps_the_end_back() -> None:
    clock = FakeClock()
    deadline = Deadline(90.0, clock=clock)
    assert deadline.left_s() == pytest.approx(90.0 - CLOSING_S)
    clock.sleep(88.0)
    assert deadline.is_over()
    assert deadline.closing_s() == pytest.approx(2.0)
    clock.sleep(88.0)
    assert deadline.left_s() == deadline.closing_s() == 0.0


def test_a_short_budget_is_not_all_kept_back() -> None:
    assert Deadline(5.0, clock=FakeClock()).left_s() == pytest.approx(4.5)


def test_stages_share_what_is_left() -> None:
    deadline = Deadline(33.0, clock=FakeClock())
    assert deadline.share_s(2) == pytest.approx(15.0)
    assert deadline.share_s(2, later_s=3.0) == pytest.approx(9.0), "the later stage has 3 and 9"
    assert deadline.share_s(2, later_s=20.0) == pytest.approx(15.0), "it would not come to anything"


def test_a_stage_ends_no_later_than_the_whole() -> None:
    clock = FakeClock()
    deadline = Deadline(100.0, clock=clock)
    assert deadline.earlier(10.0).left_s() == pytest.approx(10.0)
    assert deadline.earlier(1000.0).left_s() == deadline.left_s()
    stage = deadline.earlier(10.0)
    clock.sleep(11.0)
    assert stage.is_over()
    assert not deadline.is_over()
    assert stage.no_time == deadline.no_time == "no time left (--seconds 100)"


def test_without_a_budget_there_is_always_time() -> None:
    deadline = endless()
    assert math.isinf(deadline.share_s(3, 5.0))
    assert math.isinf(deadline.earlier(math.inf).left_s())
    assert not deadline.is_over()
