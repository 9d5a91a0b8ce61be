"""What is said of a candidate that is in no proven plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hotloop.model.tuning import LikelyPlan, PlanStep
from hotloop.tune.result import _refusals
from hotloop.tune.search.status import Known, Status

from .simulated import candidates

BF16 = candidates("bf16")[0]


def session(*known: Known) -> Any:
    """Return what a session found: nothing that it believes in, and no set of fresh processes."""
    state = SimpleNamespace(known=known, plan=())
    return SimpleNamespace(
        search=SimpleNamespace(state=state, is_done=True),
        confirmer=SimpleNamespace(goals=[], sets=None),
        interrupted=False,
    )


def likely(name: str) -> LikelyPlan:
    """Return a plan of one step that was not settled."""
    step = PlanStep(name=name, ratio=1.2, low=1.0, high=1.4)
    return LikelyPlan(steps=(step,), ratio=1.2, low=1.0, high=1.4, reason="", resume="")


def test_a_step_of_the_likely_plan_is_not_called_without_difference() -> None:
    found = session(Known(candidate=BF16, status=Status.OPEN, reason="no difference: 1.020 [0.970, 1.070]"))
    assert [one.reason for one in _refusals(found, None, ())] == ["no difference: 1.020 [0.970, 1.070]"]
    (open_,) = _refusals(found, None, (likely(BF16.name),))
    assert open_.reason == "promising, but no time was left to confirm it"
