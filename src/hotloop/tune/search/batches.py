"""What can be tried in the next set of arms, so that time is left for a proof."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hotloop.model.optimization import Candidate
from hotloop.tune.design.patterns import exclude
from hotloop.tune.executor import PlanSteps
from hotloop.tune.search.arms import Arms
from hotloop.tune.search.contest import MAX_ROUNDS, Contest
from hotloop.tune.search.screening import Screening
from hotloop.tune.session.ledger import Ledger

PROOF_SETS, PROOF_ROUNDS, LEAST_ROUNDS = 3, 8, 4
"""Of a confirmation that time is kept for while something else is tried."""
CONTEST_SHARE = 0.35
"""Of the budget, for one set of arms: what was expected of its start may be wrong by a factor beside neighbours."""
CONTEST_ROUNDS = 5
"""Below so many rounds fewer arms are run instead."""
SLACK = 1.1
"""Of the time that is kept for a proof: a block is repeated, a start takes longer."""
SLOW_S = 15.0
"""More than this, once: such candidates have sets of their own, in which they hold up none of the others."""
AGAIN = 0.25
"""Of what the first start of compiled code takes, the next ones, with warm caches: 4 to 5 s of 24 on a small GPT."""
MAX_ARMS = 8


class Batches:
    """Chooses what is tried together.

    Args:
        arms: knows what starts and blocks take, the room and the time left.
        ledger: knows the budget.
        screening: knows what first steps took.
        contest: knows which arms a candidate needs.
        conflicts: what cannot be on together.
    """

    def __init__(
        self,
        arms: Arms,
        ledger: Ledger,
        screening: Screening,
        contest: Contest,
        conflicts: Mapping[str, frozenset[str]],
    ) -> None:
        self._conflicts = conflicts
        self._arms = arms
        self._budget_s = ledger.budget.seconds
        self._screening = screening
        self._contest = contest

    def base(self, plan: PlanSteps) -> PlanSteps:
        """Return the plan, where it has room beside the original and one arm more; else nothing."""
        return plan if self._arms.room(3) >= 3 else ()

    def reserve_s(self) -> float:
        """Return the seconds of a confirmation, in full where the budget is large enough for that."""
        set_s = self._arms.costs.set_s
        full, least = (SLACK * PROOF_SETS * set_s(2, rounds) for rounds in (PROOF_ROUNDS, LEAST_ROUNDS))
        if self._contest.unsure:  # and perturbed arms: one in each set, or one in all
            full, least = 1.5 * full, least + SLACK * (set_s(3, LEAST_ROUNDS) - set_s(2, LEAST_ROUNDS))
        return full if full < 0.4 * self._budget_s else least

    def telling_rounds(self, num_arms: int) -> int:
        """Return the rounds of a set after which the same time tells more in fresh processes."""
        return min(MAX_ROUNDS, max(CONTEST_ROUNDS, self._arms.costs.telling_rounds(num_arms)))

    def until_left_s(self, batch: Sequence[Candidate], share: float | None = None) -> float:
        """Return the time left at which a set ends: what it takes is learned with it, and others need theirs.

        Args:
            batch: that is tried in it.
            share: of the budget that it may take; None: `CONTEST_SHARE`, a candidate alone as much as there is.
        """
        share = share or (CONTEST_SHARE if len(batch) > 1 else 1.0)
        return max(self.reserve_s(), self._arms.left_s() - share * self._budget_s)

    def next(
        self, todo: Sequence[Candidate], number: int, plan: PlanSteps, share: float | None = None
    ) -> list[Candidate]:
        """Return as many candidates as can be tried together in the time beyond what a proof needs.

        What takes long to begin (reading a whole data set, compilation) holds up none of the others: it has a set of
        its own later, if there is time. Where there is none, it goes first if more is expected of it than of all others
        together.

        Args:
            todo: the most promising first.
            number: of the set.
            plan: that they are tried beside.
            share: of the budget that the set may take; None: `CONTEST_SHARE`, a candidate alone as much as there is.
        """
        done = self._arms.tried_in(f"contest|{number}")
        if done is not None:
            return [one for one in todo if one.label in done]
        room_s = self._arms.left_s() - self.reserve_s()
        limit_s = min(room_s, (share or CONTEST_SHARE) * self._budget_s)
        alone_s = room_s if share is None else limit_s
        together = self._grown([one for one in todo if self._one_off_s(one) < SLOW_S], plan, limit_s)
        apart = self._grown([one for one in todo if self._one_off_s(one) >= SLOW_S], plan, limit_s)
        if len(together) < 2:
            alone = next(([one] for one in todo if self._proven_s([one], plan) <= alone_s), [])
            return apart if alone and alone[0] in apart else alone
        others = apart or [one for one in todo if one not in together][:1]
        if not others or others[0].expected <= expected_together(together, self._conflicts):
            return together
        others_s = self._proven_s(others, plan)
        both_s = others_s + self._needed_s(together, plan, MAX_ROUNDS)
        return others if others_s <= alone_s < both_s else together

    def affordable(self, todo: Sequence[Candidate], number: int) -> list[Candidate]:
        """Return the first candidate that one set of its own has time for, if there is none for a proof."""
        done = self._arms.tried_in(f"contest|{number}")
        if done is not None:
            return [one for one in todo if one.label in done]
        left_s = self._arms.left_s()
        return next(([one] for one in todo if self._needed_s([one], (), LEAST_ROUNDS) <= left_s), [])

    def _grown(self, todo: Sequence[Candidate], plan: PlanSteps, limit_s: float) -> list[Candidate]:
        """Return as many candidates as one set has room and time for."""
        batch: list[Candidate] = []
        for one in todo:
            if len(batch) < MAX_ARMS and self._needed_s([*batch, one], plan, CONTEST_ROUNDS) <= limit_s:
                batch.append(one)
        return batch

    def _proven_s(self, batch: Sequence[Candidate], plan: PlanSteps) -> float:
        """Return what a set with some candidates takes, and what the first one's starts take longer in a proof."""
        starts_s = PROOF_SETS * AGAIN * self._one_off_s(batch[0])
        return self._needed_s(batch, plan, LEAST_ROUNDS) + starts_s

    def _needed_s(self, batch: Sequence[Candidate], plan: PlanSteps, rounds: int) -> float:
        """Return what a set with these candidates takes; inf: they have no room beside one another."""
        plans = self._contest.arm_plans(self.base(plan), batch)
        originals, _ = self._arms.first_originals(plans, undecided=self._contest.wants_perturbed)
        num_arms = len(originals) + len(plans)
        if self._arms.room(num_arms) < num_arms:
            return math.inf
        one_off_s = sum(self._one_off_s(step) for each in plans for step in each)
        return self._arms.costs.set_s(num_arms, rounds, one_off_s)

    def _one_off_s(self, candidate: Candidate) -> float:
        """Return what a candidate's first steps take more, as far as it is known."""
        return self._screening.one_off_s.get(candidate.label, candidate.one_off_s or 0.0)


def expected_together(batch: Sequence[Candidate], conflicts: Mapping[str, frozenset[str]]) -> float:
    """Return what is expected of those of them that can be on together, the most promising first."""
    taken: list[Candidate] = []
    for one in sorted(batch, key=lambda one: -one.expected):
        if not any(exclude(one, other, conflicts) for other in taken):
            taken.append(one)
    return math.prod(max(1.0, one.expected) for one in taken)
