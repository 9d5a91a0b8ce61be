"""`--seconds` is the whole time of the command."""

from __future__ import annotations

import math

import click
import pytest

from hotloop.cli.time_budget import DEFAULT_S, time_budget


def test_without_an_option_there_is_a_budget() -> None:
    rule, deadline = time_budget(None, None, full=False)
    assert deadline.seconds == DEFAULT_S
    assert not rule.lasting


def test_one_that_is_asked_for_is_used() -> None:
    rule, deadline = time_budget(None, 20.0, full=False)
    assert deadline.seconds == 20.0
    assert rule.lasting
    assert rule.seconds is None


def test_steps_are_measured_within_it() -> None:
    rule, deadline = time_budget(50, 20.0, full=False)
    assert (rule.steps, rule.lasting, deadline.seconds) == (50, False, 20.0)


def test_a_whole_run_has_none() -> None:
    rule, deadline = time_budget(None, None, full=True)
    assert rule.full
    assert math.isinf(deadline.left_s())
    for steps, seconds in ((5, None), (None, 5.0)):
        with pytest.raises(click.UsageError, match="--full"):
            time_budget(steps, seconds, full=True)
