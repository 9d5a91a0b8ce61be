"""One candidate against the plan so far: a pair of processes, and a fresh one where that leaves doubt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Failure, Measured, Trial
from hotloop.stats.screen import Screen, promising
from hotloop.stats.verdict import margin
from hotloop.tune.executor import Executor, PlanSteps, SetFailed, SetOrder
from hotloop.tune.session.budget import Budget
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.decision import DOUBTFUL, decide_trial, joined, measured, ratio_of

SCREEN_ROUNDS = 8
"""Of one pair; more cannot tell processes from programs (see `stats.screen`), so time goes to fresh pairs."""


class Screening:
    """Runs trials.

    Args:
        executor: runs their pairs.
        ground: what they are judged by.
        budget: the clock.
        progress: told of the ratio so far.
    """

    def __init__(
        self, executor: Executor, ground: NoiseBaseline, budget: Budget, progress: Callable[[str], None]
    ) -> None:
        self._executor = executor
        self._ground = ground
        self._budget = budget
        self._progress = progress

    def trial(self, key: str, candidate: Candidate, incumbent: PlanSteps, plan: PlanSteps) -> Trial:
        """Try a plan, which is the incumbent with the candidate on."""
        began = self._budget.now()
        ground = self._ground
        outcome = self._pair(candidate, incumbent, plan, fresh=False)
        decision = decide_trial(outcome, candidate, ground.floor, ground.spread)
        if decision == DOUBTFUL and isinstance(outcome, Measured):
            outcome = joined(outcome, self._pair(candidate, incumbent, plan, fresh=True))
            decision = decide_trial(outcome, candidate, ground.floor, ground.spread)
        return Trial(
            key=key,
            candidate=candidate,
            incumbent=incumbent,
            outcome=outcome,
            decision=decision,
            ratio=ratio_of(outcome, ground.spread) if isinstance(outcome, Measured) else None,
            seconds=self._budget.now() - began,
            predicted=candidate.predicted,
        )

    def _pair(
        self, candidate: Candidate, incumbent: PlanSteps, plan: PlanSteps, *, fresh: bool
    ) -> Measured | Failure:
        order = SetOrder(plans=(incumbent, plan), max_rounds=self._ground.rounds(SCREEN_ROUNDS), fresh=fresh)
        record = self._executor.run(order, self._clear)
        if isinstance(record, SetFailed) and record.arm == 0:  # the incumbent may have come to its own end
            record = self._executor.run(order, self._clear)
        if isinstance(record, SetFailed):
            return record.failure
        return measured(record, candidate, plan, self._ground.references)

    def _clear(self, rounds: Sequence[Sequence[float]]) -> bool:
        """Whether the pair needs no more blocks: it is clearly slower, or clearly worth fresh pairs."""
        blocks = [math.log(times[0] / times[1]) for times in rounds]
        spread = self._ground.spread
        answer = promising(blocks, margin=margin(self._ground.floor), prior_sd=spread.sd, prior_df=spread.df)
        self._progress(f"ratio so far {math.exp(sum(blocks) / len(blocks)):.2f} after {len(blocks)} blocks")
        return answer is not Screen.MORE
