"""The state with what an action told of single candidates."""

from __future__ import annotations

import msgspec

from hotloop.model.tuning import Failure, Measured, Trial
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.state import State
from hotloop.tune.search.status import Status


def changed(state: State, steps: PlanSteps, **changes: object) -> State:
    """Return the state with something else known of some candidates."""
    labels = {step.label for step in steps}
    known = tuple(
        msgspec.structs.replace(one, **changes) if one.label in labels else one for one in state.known
    )
    return msgspec.structs.replace(state, known=known)


def with_verdict(state: State, trial: Trial, status: Status) -> State:
    """Return the state with what a trial told of its candidate."""
    known, outcome = state.of(trial.candidate), trial.outcome
    if status is Status.LATE and known.num_measured:
        return state  # what was measured of it before stays
    measured = not isinstance(outcome, Failure) and trial.ratio is not None and not status.is_refused
    cost_s = None if isinstance(outcome, Failure) else outcome.one_off_s
    parity = outcome.parity if isinstance(outcome, Measured) else None
    return changed(
        state,
        (trial.candidate,),
        status=status,
        reason=trial.decision,
        num_measured=known.num_measured + measured,
        start_s=cost_s or 0.0 if measured else known.start_s,
        parity=parity.passed if parity is not None and parity.decided else known.parity,
        switchable=known.switchable and status is not Status.UNTRIED,
    )


def tried(status: Status) -> Status:
    """Return where a candidate stands once it was measured, if nothing else is known."""
    return Status.OPEN if status in {Status.UNTRIED, Status.LATE} else status
