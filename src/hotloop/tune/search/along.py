"""What is proven along with a plan, and would not be worth a trial and a proof of its own.

Knobs that are likelier to gain than to cost, and of what was not tried that of which most is expected, if the proof has
time for arms with and without it. A volumetric net was 1.4 in 300 s, and 1.5 with an allocator that there was no time
to try.
"""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.optimization import Candidate, Refusal
from hotloop.tune.design.experiment import Design
from hotloop.tune.design.patterns import exclude
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.batches import SLOW_S
from hotloop.tune.search.confirms import Confirms
from hotloop.tune.search.screening import Screening
from hotloop.tune.session.ledger import Ledger

EXPECTED = 1.05
"""Of something untried that gets an arm in the proof of something else."""
NO_GAIN = "no gain beside the plan: in its proof it was an arm, with and without this"


class Along:
    """Chooses what is proven along with plans, and says what became of it.

    Args:
        ledger: keeps what was chosen.
        screening: knows which knobs lean towards a gain.
        confirmer: knows what its time tells.
        design: knows what excludes what.
    """

    def __init__(self, ledger: Ledger, screening: Screening, confirmer: Confirms, design: Design) -> None:
        self._ledger = ledger
        self._screening = screening
        self._confirmer = confirmer
        self._conflicts = design.conflicts
        self.untried: list[Candidate] = []
        """What got an arm without a trial before."""

    def joined(self, plan: PlanSteps, todo: Sequence[Candidate]) -> PlanSteps:
        """Return a plan with what is proven along with it.

        Args:
            plan: with nothing in it there is nothing to prove.
            todo: not tried yet.
        """
        if not plan:
            return plan
        for knob in self._screening.leaning(plan):
            if self._fits(knob, plan):
                plan = (*plan, knob)
        promising = [
            one
            for one in todo
            if one.expected >= EXPECTED and (one.one_off_s or 0.0) < SLOW_S and self._fits(one, plan)
        ]
        if not promising:
            return plan
        best = max(promising, key=lambda one: one.expected)
        longer = (*plan, best)
        key = f"along|{'+'.join(step.label for step in longer)}"
        if not self._ledger.once(key, bool, lambda: self._confirmer.tells(longer)):
            return plan
        self.untried.append(best)
        return longer

    def _fits(self, one: Candidate, plan: PlanSteps) -> bool:
        known = (*plan, *self.untried)
        return (
            one not in known
            and one.label not in self._confirmer.dropped
            and not any(exclude(step, one, self._conflicts) for step in plan)
        )

    def left(self, plan: PlanSteps) -> tuple[PlanSteps, list[Refusal]]:
        """Return a plan without what was dropped or brought nothing in a proof, and the refusals of the latter."""
        proven = self._confirmer.proven()
        idle = [one for one in self.untried if proven is not None and one in plan and one not in proven.plan]
        left = tuple(step for step in plan if step.label not in self._confirmer.dropped and step not in idle)
        return left, [Refusal(one.label, NO_GAIN) for one in idle]
