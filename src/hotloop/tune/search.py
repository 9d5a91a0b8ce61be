"""The search: candidates one after another against the plan so far; what helps stays on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import Failure, Measured, Trial
from hotloop.optimize.registry import get
from hotloop.stats.floor import Spread
from hotloop.stats.screen import MAX_BLOCKS, Screen, promising
from hotloop.stats.verdict import margin
from hotloop.tune.clock import Budget
from hotloop.tune.executor import Executor, PlanSteps, SetFailed, SetOrder
from hotloop.tune.journal import Journal, once
from hotloop.tune.judge import ACCEPTED, decide_trial, measured, ratio_of
from hotloop.tune.references import References

SCREEN_ROUNDS = 8
"""Of one pair; more cannot tell processes from programs (see `stats.screen`), so time goes to fresh pairs."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What every trial is judged by."""

    floor: float
    spread: Spread
    references: References
    max_rounds: int | None = None
    """Rounds until the program ends by itself; None: it does not."""


class Search:
    """Finds the optimizations that help together.

    Args:
        executor: runs the trials.
        journal: keeps them.
        budget: the time there is.
        ground: what they are judged by.
        progress: told of what is tried.
    """

    def __init__(
        self, executor: Executor, journal: Journal, budget: Budget, ground: Ground, progress: Callable[[str], None]
    ) -> None:
        self._executor = executor
        self._journal = journal
        self._budget = budget
        self._ground = ground
        self._progress = progress
        self.plan: PlanSteps = ()
        self.trials: list[Trial] = []
        self.refused: dict[str, Refusal] = {}

    def run(self, candidates: Sequence[Candidate], reserve_s: Callable[[int], float]) -> None:
        """Try the candidates in order, as far as the budget goes.

        Args:
            candidates: the most promising first.
            reserve_s: seconds that confirming a plan of so many steps will take.
        """
        for number, candidate in enumerate(candidates):
            if candidate.label in self.refused:
                continue
            clash = self._conflict(candidate)
            if clash is not None:
                self._refuse(candidate, clash)
                continue
            key = self._key(candidate)
            known = self._journal.get(key, Trial)
            needed = reserve_s(len(self.plan) + 1) + self._typical_s()
            if known is None and self._budget.left() < needed:
                self._refuse(candidate, "not tried: the time left is needed to confirm what was found")
                continue
            self._progress(f"{number + 1}/{len(candidates)} {candidate.label}")
            trial = once(self._journal, key, Trial, lambda candidate=candidate, key=key: self._try(candidate, key))  # type: ignore[misc]
            self._take(trial)

    def _take(self, trial: Trial) -> None:
        self.trials.append(trial)
        if trial.decision == ACCEPTED:
            self.plan = with_candidate(self.plan, trial.candidate)
        else:
            self._refuse(trial.candidate, trial.decision)

    def _refuse(self, candidate: Candidate, reason: str) -> None:
        self.refused[candidate.label] = Refusal(candidate.label, reason)

    def _conflict(self, candidate: Candidate) -> str | None:
        for step in self.plan:
            if step.name in get(candidate.name).conflicts or candidate.name in get(step.name).conflicts:
                return f"cannot be on together with {step.name}, which is"
        return None

    def _key(self, candidate: Candidate) -> str:
        return f"trial|{'+'.join(step.label for step in self.plan)}|{candidate.label}"

    def _typical_s(self) -> float:
        spent = sorted(trial.seconds for trial in self.trials)
        return spent[len(spent) // 2] if spent else 0.0

    def _try(self, candidate: Candidate, key: str) -> Trial:
        began = self._budget.now()
        plan = with_candidate(self.plan, candidate)
        rounds = min(SCREEN_ROUNDS, self._ground.max_rounds or SCREEN_ROUNDS, MAX_BLOCKS)
        order = SetOrder(plans=(self.plan, plan), max_rounds=rounds, fresh=False)
        record = self._executor.run(order, lambda rounds: self._clear(rounds))
        outcome: Measured | Failure
        if isinstance(record, SetFailed):
            outcome = record.failure
        else:
            outcome = measured(record, candidate, plan, self._ground.references)
        ground = self._ground
        return Trial(
            key=key,
            candidate=candidate,
            incumbent=self.plan,
            outcome=outcome,
            decision=decide_trial(outcome, candidate, ground.floor, ground.spread),
            ratio=ratio_of(outcome, ground.spread) if isinstance(outcome, Measured) else None,
            seconds=self._budget.now() - began,
        )

    def _clear(self, rounds: Sequence[Sequence[float]]) -> bool:
        """Whether the pair needs no more blocks: it is clearly slower, or clearly worth fresh pairs."""
        blocks = [math.log(times[0] / times[1]) for times in rounds]
        spread = self._ground.spread
        answer = promising(blocks, margin=margin(self._ground.floor), prior_sd=spread.sd, prior_df=spread.df)
        self._progress(f"ratio so far {math.exp(sum(blocks) / len(blocks)):.2f} after {len(blocks)} blocks")
        return answer is not Screen.MORE


def with_candidate(plan: PlanSteps, candidate: Candidate) -> PlanSteps:
    """Return the plan with a candidate on; it takes the place of the same optimization with other parameters."""
    return (*(step for step in plan if step.name != candidate.name), candidate)
