"""The likely plan of a session, or why there is none."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest

from hotloop.model.errors import HotloopError
from hotloop.model.optimization import Refusal
from hotloop.model.tuning import LikelyPlan, TuneResult
from hotloop.store.session import new_session
from hotloop.tune.plan.likely_plan import likely_plan

from ..report.results import STEPS, empty, full


def _stored(folder: Path, result: TuneResult) -> None:
    with contextlib.closing(new_session(folder, "20260101-100000")) as session:
        session.put("result", result)


def test_the_likely_steps_are_the_plan(tmp_path: Path) -> None:
    likely = LikelyPlan(steps=STEPS[:1], ratio=1.3, low=1.0, high=1.7, reason="", resume="")
    _stored(tmp_path, empty(likely=(likely,)))
    assert likely_plan(tmp_path).steps == STEPS[:1]


OPEN = Refusal("a", "promising, but no time was left to confirm it")


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (full(likely=()), "left nothing likely beside its proven plan"),
        (empty(likely=(), refused=()), "of 2 trials, none beat the program as it is"),
        (empty(likely=(), refused=(OPEN,)), "a was promising, but no time was left to confirm it"),
    ],
    ids=["proven", "nothing", "open"],
)
def test_why_there_is_none(result: TuneResult, said: str, tmp_path: Path) -> None:
    _stored(tmp_path, msgspec.structs.replace(result))
    with pytest.raises(HotloopError, match=said):
        likely_plan(tmp_path)


def test_no_session_at_all(tmp_path: Path) -> None:
    with pytest.raises(HotloopError, match="no session here has tuned anything"):
        likely_plan(tmp_path)
