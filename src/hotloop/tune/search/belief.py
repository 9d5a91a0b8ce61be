"""What is believed to help by now, and why everything else is not part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hotloop.model.optimization import Candidate, Numerics, Refusal
from hotloop.model.tuning import Trial
from hotloop.tune.design.patterns import exclude, with_candidate
from hotloop.tune.executor import PlanSteps
from hotloop.tune.verdict.decision import ACCEPTED

NO_TIME = "not tried: too little time was left (--budget)"
UNPROVEN = "promising, but not confirmed"


class Belief:
    """A plan that changes with every trial and every proof.

    Args:
        conflicts: names that cannot be on together.
    """

    def __init__(self, conflicts: Mapping[str, frozenset[str]]) -> None:
        self._conflicts = conflicts
        self._plan: PlanSteps = ()
        self.refused: dict[str, Refusal] = {}
        """Why each candidate is not in the plan, by label; of those in it, what was said before."""
        self.aside: list[Candidate] = []
        """What could not be told: whether it learns the same, or what it gains when nobody else uses the machine."""

    @property
    def plan(self) -> PlanSteps:
        """What is believed to help: exact steps first.

        Of a plan of which nothing tells if it learns the same its exact beginning can be proven.
        """
        return self._plan

    @plan.setter
    def plan(self, plan: PlanSteps) -> None:
        self._plan = exact_first(plan)

    def joined(self, plan: PlanSteps, more: Sequence[Candidate]) -> PlanSteps:
        """Return a plan with what goes with it; what is there first stays."""
        for candidate in self.without_aside(more):
            if not self.excluded_by(plan, candidate) and candidate not in plan:
                plan = with_candidate(plan, candidate, self._conflicts)
        return plan

    def excluded_by(self, plan: PlanSteps, candidate: Candidate) -> PlanSteps:
        """Return the steps of a plan that a candidate cannot be on together with."""
        return tuple(step for step in plan if step != candidate and exclude(step, candidate, self._conflicts))

    def without_aside(self, steps: Sequence[Candidate]) -> PlanSteps:
        """Return what has not been set aside."""
        return tuple(step for step in steps if step not in self.aside)

    def set_aside_loose(self) -> None:
        """Go on without what changes the numbers."""
        self.set_aside([step for step in self.plan if _is_loose(step)], UNPROVEN)

    def set_aside(self, steps: Sequence[Candidate], reason: str) -> None:
        """Go on without steps that could not be told."""
        self.aside += steps
        self.refuse(steps, reason)
        self.plan = self.without_aside(self.plan)

    def refuse(self, candidates: Sequence[Candidate], reason: str) -> None:
        """Keep why candidates are not in the plan, if they are not."""
        self.refused |= {one.label: Refusal(one.label, reason) for one in candidates}

    def take(self, trials: Sequence[Trial]) -> None:
        """Keep why each candidate is not in the plan; one that an arm accepted is not refused by another arm."""
        accepted = {trial.candidate.label for trial in trials if trial.decision == ACCEPTED}
        for trial in trials:
            one = trial.candidate
            self.refuse([one], self.displaced(one) if one.label in accepted else trial.decision)

    def displaced(self, candidate: Candidate) -> str:
        """Return why something that helped is not in the plan."""
        others = self.excluded_by(self.plan, candidate)
        return f"replaced by {others[0].label}, which was faster" if others else UNPROVEN


def exact_first(plan: Sequence[Candidate]) -> PlanSteps:
    """Return a plan with what changes numbers behind what does not."""
    return tuple(sorted(plan, key=_is_loose))


def _is_loose(step: Candidate) -> bool:
    return step.numerics is not Numerics.EXACT
