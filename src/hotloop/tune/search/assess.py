"""The state after new evidence: what is believed, the plan, and where every candidate stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.evidence import Evidence, believed, measured_at
from hotloop.tune.search.gains import Gains
from hotloop.tune.search.state import State
from hotloop.tune.search.status import Known, Status
from hotloop.tune.search.working_plan import best_plan, threshold


def assessed(state: State, prior: Gains, evidence: Sequence[Evidence] = ()) -> State:
    """Return the state with more evidence, and the plan that follows.

    Args:
        state: with the status of all that was refused.
        prior: what was believed before anything was measured.
        evidence: what is new.
    """
    every = (*state.evidence, *evidence)
    gains = believed(prior, every, passive=state.passive)
    able = [one for one in state.known if one.num_measured and _may_be_planned(one)]
    plan = best_plan(gains, [one.candidate for one in able], state.conflicts, state.num_measured, state.plan)
    state = msgspec.structs.replace(state, evidence=every, gains=gains, plan=plan)
    at = measured_at(gains, every)
    return msgspec.structs.replace(state, known=tuple(_assessed(state, one, at) for one in state.known))


def _may_be_planned(one: Known) -> bool:
    return one.status in {Status.OPEN, Status.HELPS, Status.SLOWER}


def _assessed(state: State, one: Known, measured_at: Mapping[str, float]) -> Known:
    """Return what is known of a candidate beside the plan as it is."""
    without = _without(state, one.candidate)
    before = {step.label for step in without}
    mean, deviation = state.gains.gain({*before, one.label}, before)
    shift = state.gain_beside(without) - measured_at[one.label] if one.label in measured_at else 0.0
    status, reason = one.status, one.reason
    if one.num_measured and _may_be_planned(one):
        status, reason = _status(state, one, mean, deviation)
    return msgspec.structs.replace(
        one, mean=mean, deviation=deviation, shift=shift, status=status, reason=reason
    )


def _status(state: State, one: Known, mean: float, deviation: float) -> tuple[Status, str]:
    if one.candidate in state.plan:
        return Status.HELPS, "promising, but not confirmed"
    low, high = (math.exp(mean + sign * 1.96 * deviation) for sign in (-1, 1))
    seen = f"{math.exp(mean):.3f} [{low:.3f}, {high:.3f}]"
    if high < 1:
        return Status.SLOWER, f"slower: {seen}"
    gone = state.displaced(one.candidate, state.plan)
    if gone and low > 1:
        return Status.HELPS, f"replaced by {gone[0].label}, which was faster"
    if mean > threshold(1, deviation):
        words = "not significant after correction for the number of changes tried"
        return Status.OPEN, f"{words}: {seen}"
    return Status.OPEN, f"no difference: {seen}"


def _without(state: State, candidate: Candidate) -> PlanSteps:
    gone = state.displaced(candidate, state.plan)
    return tuple(step for step in state.plan if step != candidate and step not in gone)
