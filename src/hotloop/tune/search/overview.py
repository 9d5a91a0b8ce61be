"""What is known after an action: the plan, where its proof stands, and what of it cannot be told now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from hotloop.tune.confirm.confirmation import Confirmer
from hotloop.tune.confirm.set_pairs import MIN_SETS
from hotloop.tune.design.experiment import Design
from hotloop.tune.executor import PlanSteps
from hotloop.tune.goals.objective import Objective
from hotloop.tune.plan.exact_first import is_loose
from hotloop.tune.search.assess import Priors, assessed
from hotloop.tune.search.evidence import Compared, Evidence
from hotloop.tune.search.state import Proof, State
from hotloop.tune.search.status import Status
from hotloop.tune.search.updates import changed
from hotloop.tune.sets.set_runner import SetRunner

USUAL_PAIR_ERROR = 0.035
"""Standard deviation of what a pair of processes shows in eight blocks: they differ by 2%, and their blocks by twice
that (`benchmarks/results/noise-2026-11-22.md`)."""


class Overview:
    """Knows where a session stands.

    Args:
        runner: knows the noise, and the neighbours.
        confirmer: knows the proofs.
        design: what the experiment is designed from.
    """

    def __init__(self, runner: SetRunner, confirmer: Confirmer, design: Design) -> None:
        self._runner = runner
        self._confirmer = confirmer
        self._design = design

    def __call__(self, state: State, prior: Priors, evidence: Sequence[Evidence]) -> State:
        """Return the state with more evidence, the plan that follows, and where its proof stands."""
        ground = self._runner.originals.baseline()
        objective = self._objective(state)
        state = msgspec.structs.replace(
            state,
            objective=objective,
            pair_error=_pair_error(state, evidence),
            floor=ground.floor,
            passive=self._passive(),
        )
        state = assessed(_unblocked(state), prior, evidence)
        wanted = state.plan
        state = self._blocked(state, prior)
        waits = wanted != state.plan and self._confirmer.may_be_told_later(wanted)
        proven = self._confirmer.proven()
        by_memory = objective.by_memory
        guesses = {one.label: self._proof((one.candidate,), by_memory) for one in state.known}
        return msgspec.structs.replace(
            state,
            proof=self._proof(state.plan, by_memory),
            blocked=wanted if waits else (),
            begun=tuple(
                (plan, self._proof(plan, by_memory))
                for plan in self._confirmer.goals
                if _may_hold(state, plan)
            ),
            guesses=guesses,
            proven=math.log(proven.speed) if proven is not None else 0.0,
        )

    def _objective(self, state: State) -> Objective:
        """Return the aim, with what is known of it by now."""
        return msgspec.structs.replace(
            state.objective,
            original_bytes=self._runner.original_peak(),
            reached=self._confirmer.proven() is not None,
        )

    def _blocked(self, state: State, prior: Priors) -> State:
        """Go on without what cannot be told now: what gains from neighbours beside some, or how the rest learns."""
        for _ in range(len(state.plan)):
            found, reason = self._cannot_be_told(state.plan)
            if not found:
                return state
            state = assessed(changed(state, found, status=Status.BLOCKED, reason=reason), prior)
        return state

    def _cannot_be_told(self, plan: PlanSteps) -> tuple[PlanSteps, str]:
        heeding, reason = self._confirmer.beside(plan)
        if heeding and self._runner.noisy():
            return heeding, reason
        seen = self._confirmer.standing(plan)
        loose = tuple(step for step in plan if is_loose(step))
        if seen is None or seen.num_sets < MIN_SETS or seen.parity.decided or not loose:
            return (), ""
        if self._runner.wants_perturbed(unsettled=True):
            return (), ""
        return loose, f"whether it learns the same is not decided: {seen.parity.evidence}"

    def _proof(self, plan: PlanSteps, by_memory: bool) -> Proof:
        if not plan:
            return Proof()
        hopeless, held = self._confirmer.is_hopeless(plan), self._confirmer.held(plan)
        seen = held or self._confirmer.standing(plan)
        ratio = None if seen is None else seen.memory if by_memory else seen.ratio
        if seen is None or ratio is None:
            return Proof(hopeless=hopeless)
        counted = len(self._confirmer.sets.counted(plan)) if seen.beside is None else 0
        return Proof(
            num_sets=counted,
            log_gain=math.log(ratio.ratio) if counted else 0.0,
            held=held is not None,
            half_width=math.log(ratio.high / ratio.low) / 2,
            hopeless=hopeless,
            parity=seen.parity.passed if seen.parity.decided else None,
        )

    def _passive(self) -> bool:
        """Whether screening waits passively at barriers, as neighbours ask for by now.

        A step of many short parallel regions takes longer so (an LSTM's 5 ms were 25): beside a neighbour it was
        observed with what that costs, and is not to take longer still.
        """
        wanted = self._runner.noisy() if self._runner.contentions else self._design.busy
        return wanted and not self._runner.held_up_by_waiting(self._design.observed_s)


def _unblocked(state: State) -> State:
    found = tuple(one.candidate for one in state.known if one.status is Status.BLOCKED)
    return changed(state, found, status=Status.OPEN)


def _may_hold(state: State, plan: PlanSteps) -> bool:
    """Whether every step of a plan is likelier to help than not."""
    known = [state.of(step) for step in plan]
    return all(one.status in {Status.HELPS, Status.OPEN} and one.mean > 0 for one in known)


def _pair_error(state: State, evidence: Sequence[Evidence]) -> float:
    """Return the typical deviation of what pairs of processes show; two noisy ones alone may be a neighbour's visit."""
    pairs = [one for one in (*state.evidence, *evidence) if isinstance(one, Compared)]
    return median([USUAL_PAIR_ERROR, USUAL_PAIR_ERROR, *(math.sqrt(one.variance) for one in pairs)])
