"""What the search asks of a confirmation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hotloop.model.optimization import Refusal
from hotloop.model.ratio import Ratio
from hotloop.tune.executor import PlanSteps


class Standing(Protocol):
    """A plan in fresh processes."""

    @property
    def plan(self) -> PlanSteps:
        """What was on."""

    @property
    def ratio(self) -> Ratio | None:
        """Its speed; None: too little was measured."""


class Confirms(Protocol):
    """A confirmer, as the search knows it."""

    dropped: dict[str, Refusal]
    instead: Callable[[PlanSteps, Sequence[Refusal]], PlanSteps]
    """What a plan goes on as, given what is left of it and what was taken out."""

    def run(self, plan: PlanSteps, until_left_s: float = 0.0, *, guessed: bool = False) -> None:
        """Confirm a plan."""

    def prove(self, plan: PlanSteps) -> None:
        """Run the sets that a proof needs."""

    def exhaust(self) -> None:
        """Use what time is left for what may still hold."""

    def proven(self) -> Standing | None:
        """Return what held so far."""

    def promising(self) -> Standing | None:
        """Return what may hold."""

    def undecided(self, plan: PlanSteps) -> bool:
        """Whether a plan had the sets of a proof, and they cannot tell if it learns the same."""

    def beside(self, plan: PlanSteps) -> tuple[PlanSteps, str]:
        """Return the steps of a plan of which no set tells, because neighbours gave them what they gain, and why."""

    def tells(self, plan: PlanSteps) -> bool:
        """Whether a proof has time for a plan with and without its last step."""
