"""The state after new evidence: what is believed, the plan, and where every candidate stands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from hotloop.model.goal import Goal
from hotloop.model.optimization import Candidate
from hotloop.model.quantities import byte_size
from hotloop.tune.confirm.set_pairs import MAX_SETS
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.gains import Gains
from hotloop.tune.search.evidence import Evidence, believed, believed_peaks, measured_at
from hotloop.tune.search.state import State
from hotloop.tune.search.status import Known, Status
from hotloop.tune.search.working_plan import best_plan, is_within


class Priors(NamedTuple):
    """What is believed before anything was measured."""

    speeds: Gains
    peaks: Gains | None = None
    """None: memory is not counted."""


def assessed(state: State, prior: Priors, evidence: Sequence[Evidence] = ()) -> State:
    """Return the state with more evidence, and the plan that follows.

    Args:
        state: with the status of all that was refused.
        prior: what was believed before anything was measured.
        evidence: what is new.
    """
    every = (*state.evidence, *evidence)
    speeds = believed(prior.speeds, every, passive=state.passive)
    peaks = believed_peaks(prior.peaks, every) if prior.peaks is not None else None
    objective = state.objective
    limit = objective.limit(speeds, peaks, state.half_width(MAX_SETS))
    # What is nearest to a limit of memory is the fastest of all within it, whatever is looked for meanwhile.
    wanted = peaks if objective.aim.goal is Goal.MEMORY and peaks is not None else speeds
    able = [one.candidate for one in state.known if one.num_measured and _may_be_planned(one)]
    plan = best_plan(wanted, able, state.conflicts, limit)
    state = msgspec.structs.replace(state, evidence=every, speeds=speeds, peaks=peaks, plan=plan)
    # Memory that is saved is saved whatever the speed.
    at = measured_at(speeds, every) if state.gains is speeds else {}
    return msgspec.structs.replace(state, known=tuple(_assessed(state, one, at) for one in state.known))


def _may_be_planned(one: Known) -> bool:
    return one.status in {Status.OPEN, Status.HELPS, Status.SLOWER, Status.OVER}


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
    over = _over(state, one.candidate)
    if over is not None:
        return Status.OVER, over
    low, high = (math.exp(mean + sign * 1.96 * deviation) for sign in (-1, 1))
    seen = f"{math.exp(mean):.3f} [{low:.3f}, {high:.3f}]"
    if high < 1:
        return Status.SLOWER, f"{'more memory' if state.gains is state.peaks else 'slower'}: {seen}"
    gone = state.displaced(one.candidate, state.plan)
    if gone and low > 1:
        return Status.HELPS, f"replaced by {gone[0].label}, which was faster"
    return Status.OPEN, f"no difference: {seen}"


def _over(state: State, candidate: Candidate) -> str | None:
    """Return why the plan with a candidate is not within its limit, where it is within it without; None: it is."""
    objective = state.objective
    limit = objective.limit(state.speeds, state.peaks, state.half_width(MAX_SETS))
    base = _without(state, candidate)
    plan = (*base, candidate)
    if limit is None or is_within(limit, plan) or not is_within(limit, base):
        return None
    gain, _ = limit.gains.gain({step.label for step in plan})
    if objective.aim.fit_bytes is None or objective.original_bytes is None:
        seen, least = math.exp(gain), math.exp(limit.least)
        return f"too slow: the plan with it is {seen:.2f}x as fast; from {least:.2f}x on --max-slowdown can be proven"
    peak, most = int(objective.original_bytes / math.exp(gain)), objective.aim.fit_bytes
    return f"does not fit: the plan with it has a peak of {byte_size(peak)}, more than {byte_size(most)}"


def _without(state: State, candidate: Candidate) -> PlanSteps:
    gone = state.displaced(candidate, state.plan)
    return tuple(step for step in state.plan if step != candidate and step not in gone)
