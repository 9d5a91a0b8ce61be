"""The confirmation: the plan in fresh processes against the original program; only this number is quoted.

Picking the best of many flatters, so what was seen in the search is not used. A set holds the original,
every prefix of the plan, and the plan; neighbours in it give each step's factor, and the factors multiply to
the total. A prefix was run as it is, so where the last steps do not hold, the plan before them is proven.
"""

from __future__ import annotations

from collections.abc import Callable

from hotloop.model.optimization import Refusal
from hotloop.model.tuning import FailureKind
from hotloop.tune.confirm.step_status import MIN_SETS, Confirmation, StepStatus, confirmed, standing
from hotloop.tune.executor import Executor, PlanSteps, SetFailed, SetOrder, SetRecord
from hotloop.tune.session.ledger import Ledger
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.chained_sets import linked

SET_ROUNDS = 6
"""Blocks of each arm in a set. Pairs are the samples, but among fewer than six blocks the wild ones cannot be
told: with four a true 5% among eleven nulls was proven in 67 of 100 simulated sessions, with six in 94."""


class Confirmer:
    """Confirms plans.

    Args:
        executor: runs the sets.
        ledger: keeps them, and the time there is.
        ground: floor, spread and reference losses.
        progress: told of what is measured.
    """

    def __init__(
        self, executor: Executor, ledger: Ledger, ground: NoiseBaseline, progress: Callable[[str], None]
    ) -> None:
        self._executor = executor
        self._ledger = ledger
        self._ground = ground
        self._progress = progress
        self._apart = False
        self._candidates: list[Confirmation] = []
        self.dropped: dict[str, Refusal] = {}
        self.records: list[SetRecord] = []
        """Every set that was measured."""

    @property
    def proven(self) -> Confirmation | None:
        """The latest plan that held, as long as nothing in it was dropped since."""
        for confirmation in reversed(self._candidates):
            if not any(step.label in self.dropped for step in confirmation.plan):
                return confirmation
        return None

    def run(self, plan: PlanSteps) -> None:
        """Confirm a plan; steps that do not hold are taken out and, where needed, the rest is run anew."""
        rest = plan
        while rest:
            rest = self._confirm(rest)
        kept = self.proven.plan if self.proven else ()
        for step in plan:
            if step not in kept and step.label not in self.dropped:
                reason = "helped beside a step that did not hold; no time was left to confirm it without that"
                self._drop(Refusal(step.label, reason))

    def _confirm(self, plan: PlanSteps) -> PlanSteps:
        """Run sets until every step is settled; return what has to be confirmed anew, empty: nothing."""
        records: list[SetRecord] = []
        earlier = list(self._candidates)
        while plan:
            record, seconds = self._set(plan, len(records))
            if isinstance(record, SetFailed):
                return self._after_failure(plan, record)
            records.append(record)
            if len(records) < MIN_SETS:
                continue
            seen = standing(plan, records, self._ground)
            self._candidates = [*earlier, *confirmed(seen)]
            losers = seen.losers(last=self._ledger.budget.left() < seconds)
            if not losers:
                if not seen.open():
                    return ()
                continue
            for loser in losers:
                self._drop(loser)
            before, rest = self._without(seen)
            if rest != before and self._affordable(len(rest), seconds / (len(plan) + 1)):
                return rest
            plan = before if standing(before, records, self._ground).open() else ()
        return ()

    def _without(self, seen: StepStatus) -> tuple[PlanSteps, PlanSteps]:
        """The steps before the first dropped one, and all that are not dropped."""
        rest = tuple(step for step in seen.plan if step.label not in self.dropped)
        first = next(at for at, step in enumerate(seen.plan) if step.label in self.dropped)
        return seen.plan[:first], rest

    def _affordable(self, num_steps: int, arm_s: float) -> bool:
        return MIN_SETS * (num_steps + 1) * arm_s <= self._ledger.budget.left()

    def _set(self, plan: PlanSteps, number: int) -> tuple[SetRecord | SetFailed, float]:
        """Run the original and every prefix beside one another, or two by two where they have no room."""
        self._progress(f"confirming in fresh processes, set {number + 1}")
        prefixes = tuple(plan[:length] for length in range(len(plan) + 1))
        if not self._apart and self._executor.fits(len(prefixes)):
            return self._beside(prefixes, number)
        spent, chain = 0.0, []
        for at in range(len(plan)):
            record, seconds = self._beside(prefixes[at : at + 2], number)
            spent += seconds
            if isinstance(record, SetFailed):
                return SetFailed(at + record.arm, record.failure), spent
            chain.append(record)
        return linked(chain), spent

    def _beside(self, plans: tuple[PlanSteps, ...], number: int) -> tuple[SetRecord | SetFailed, float]:
        words = " | ".join("+".join(step.label for step in plan) for plan in plans)
        key = f"confirm|{words}|{number}"
        order = SetOrder(plans=plans, max_rounds=self._ground.rounds(SET_ROUNDS), fresh=True)
        record = self._ledger.once(
            key, SetRecord | SetFailed, lambda: self._executor.run(order, lambda _: False)
        )
        if isinstance(record, SetRecord):
            self.records.append(record)
        return record, self._ledger.seconds(key)

    def _after_failure(self, plan: PlanSteps, failed: SetFailed) -> PlanSteps:
        """Drop the step that the failing arm has and its neighbour has not."""
        failure = failed.failure
        if failure.kind is FailureKind.OUT_OF_MEMORY and len(plan) > 1 and not self._apart:
            self._apart = True
            return plan
        culprits = plan if failed.arm == 0 else (plan[failed.arm - 1],)
        for step in culprits:
            reason = f"failed when the plan was confirmed ({failure.kind.value}): {failure.message}"
            self._drop(Refusal(step.label, reason))
        rest = tuple(step for step in plan if step.label not in self.dropped)
        return rest if self._ledger.budget.left() > 0 else ()

    def _drop(self, refusal: Refusal) -> None:
        self.dropped[refusal.name] = refusal
