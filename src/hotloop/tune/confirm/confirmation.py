"""The confirmation: the plan in fresh processes against the original program; only this number is quoted.

Picking the best of many flatters, so a set tells of a plan only if the plan was chosen before it. A set holds the
original and the plan, and the plan's exact beginning where it is hard to tell if the whole learns the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hotloop.model.goal import Aim, Goal
from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.tuning import FailureKind
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.confirm.contention_filter import ContentionFilter
from hotloop.tune.confirm.likely import why_open
from hotloop.tune.confirm.set_pairs import MAX_SETS, MIN_SETS
from hotloop.tune.confirm.standing import TELLING, ConfirmedSets, Standing
from hotloop.tune.design.costs import AGAIN
from hotloop.tune.executor import PlanSteps, SetOrder, SetRecord, plan_key
from hotloop.tune.sets.set_runner import SetRunner, while_time
from hotloop.tune.verdict.reasons import PARITY, blamed, failure_reason

MIN_ROUNDS, TAME_ROUNDS, MAX_ROUNDS = 4, 6, 16
"""Of a set. Pairs are the samples; with fewer than six blocks the wild ones among them cannot be told."""
LOOK_LEFT = 1.5
"""Times what detailed profiling is expected to take: with less time left it is not begun. Compiled code took 46 s
instead of 17."""


class Dropped(NamedTuple):
    """A step that has to leave a plan, and why."""

    step: Candidate
    reason: str
    parity: bool = False
    """It does not learn the same."""
    effect: bool = True
    """False: it was not seen to act."""
    num_suspects: int = 1
    """Steps of which this is the likeliest one."""


class Confirmer:
    """Confirms plans.

    Args:
        runner: runs the sets.
        progress: told of what is measured.
        pace: knows which sets show the program as its user runs it.
        look_s: seconds that detailed profiling of the program and the plan takes; None: it is left out.
        aim: what a plan is for.
    """

    def __init__(
        self,
        runner: SetRunner,
        progress: Callable[[str], None],
        pace: ContentionFilter,
        look_s: float | None = None,
        aim: Aim = Aim(),  # noqa: B008 - frozen
    ) -> None:
        self._look_s = look_s
        self._runner = runner
        self._progress = progress
        self._pace = pace
        self._in_vain: Counter[str] = Counter()
        """Sets of each plan that did not tell of it, because of neighbours; not those of a session before."""
        self._split: dict[str, bool] = {}
        """Plans of which it is asked which step is to blame, and whether a set with their beginnings was run."""
        self.goals: list[PlanSteps] = []
        self.sets = ConfirmedSets(runner.originals, pace, aim)

    def proven(self) -> Standing | None:
        """Return the fastest plan that held; None: none did."""
        return self.sets.proven()

    def held(self, plan: PlanSteps) -> Standing | None:
        """Return a plan with the interval that it held with; None: it did not."""
        return self.sets.held(plan)

    def standing(self, plan: PlanSteps) -> Standing | None:
        """Return where a plan stands; None: it was in no set, or failed."""
        return self.sets.standing(plan)

    def is_hopeless(self, plan: PlanSteps) -> bool:
        """Whether no more sets of a plan are run: it failed or departed, or neighbours keep them from telling."""
        if self._is_split_next(plan):
            return False
        seen = self.sets.standing(plan)
        if self.sets.num(plan) and (seen is None or _departs(seen) or seen.is_over):
            return True
        num = self._in_vain[plan_key(plan)]
        in_vain = num >= MAX_SETS or (num >= MIN_SETS and self._runner.noisy())
        return in_vain or len(self.sets.counted(plan)) >= MAX_SETS

    def may_be_told_later(self, plan: PlanSteps) -> bool:
        """Whether only neighbours kept the sets of a plan from telling of it, and not in all that it may have."""
        seen = self.sets.standing(plan)
        return seen is not None and seen.beside is not None and self._in_vain[plan_key(plan)] < MAX_SETS

    def split(self, plan: PlanSteps) -> None:
        """Let the next set hold every beginning of a plan: something of it is not what its parts have shown."""
        if len(plan) > 1:
            self._split.setdefault(plan_key(plan), False)

    def _is_split_next(self, plan: PlanSteps) -> bool:
        return self._split.get(plan_key(plan)) is False

    def _split_if_affordable(self, plan: PlanSteps, num_originals: int, to_come: int) -> None:
        """Ask which step is to blame only where the rest of the proof has its time all the same."""
        costs = self._runner.costs
        split_s = costs.set_s(num_originals + len(plan), MIN_ROUNDS)
        rest_s = to_come * costs.set_s(2, MIN_ROUNDS)
        if self._is_split_next(plan) and split_s + rest_s > self._runner.left_s():
            self._split[plan_key(plan)] = True

    def beside(self, plan: PlanSteps) -> tuple[PlanSteps, str]:
        """Return the steps of a plan of which no set tells, because neighbours gave them what they gain, and why."""
        seen = self.sets.standing(plan)
        if seen is None or seen.beside is None:
            return (), ""
        return seen.beside.heeding, why_open(seen)

    def take(self, order: SetOrder, record: SetRecord, chosen: PlanSteps) -> list[Dropped]:
        """Take a set of arms as one of the proof of a plan that was chosen before it; return what has to go."""
        seen = self.sets.standing(chosen) if chosen in order.plans else None
        held = seen is not None and seen.held
        if not chosen or chosen not in order.plans or order.passive or held:
            return []
        self.sets.add(order, record, (chosen,))
        return self._to_blame(chosen)

    def confirm(self, plan: PlanSteps) -> tuple[SetOrder, SetRecord, list[Dropped]]:
        """Run one set of a plan's proof; return it, and the steps that have to go."""
        if plan not in self.goals:
            self.goals.append(plan)
        number = self.sets.num_run(plan)
        seen = self.sets.standing(plan)
        known = seen is not None and seen.beside is None and seen.width < TELLING
        of = " in peak memory" if seen is not None and seen.aim.goal is Goal.MEMORY else ""
        so_far = f", so far {seen.ratio}{of}" if seen is not None and known else ""
        self._progress(f"confirming the plan in fresh processes ({number + 1}){so_far}")
        key = f"confirm|{plan_key(plan)}|{number}"
        to_come = max(1, MIN_SETS - len(self.sets.counted(plan)))
        order = self._order(plan, to_come)
        steer = while_time(
            self._runner.left_s,
            len(order.plans),
            MIN_BLOCKS,
            self._runner.grace_s,
            self._least(plan),
            # Beside neighbours a set takes several times as long as it was expected to.
            rest_s=self._runner.left_s() * (to_come - 1) / to_come,
        )
        fresh = not self._runner.knows(key)
        split = self._is_split_next(plan)
        order, record = self._runner.run(key, order, steer)
        if split:
            self._split[plan_key(plan)] = True
        idle = self.sets.add(order, record, order.plans, own=True)
        if fresh and plan in order.plans and self._pace.beside(order, record, plan) is not None:
            self._in_vain[plan_key(plan)] += 1
        gone = [
            Dropped(step, reason, effect=False)
            for step in plan
            if (reason := next((one.reason for one in idle if one.name == step.label), None)) is not None
        ]
        return order, record, gone or self._to_blame(plan)

    def _least(self, plan: PlanSteps) -> int:
        """The fewest rounds of a set; until it is known if the plan learns the same they leave a curve of losses."""
        seen = self.sets.standing(plan)
        decided = seen is not None and seen.parity.decided
        return MIN_ROUNDS if decided else max(MIN_ROUNDS, self._runner.curve_rounds)

    def _originals(self, plan: PlanSteps) -> tuple[list[PlanSteps], tuple[int, ...]]:
        seen = self.sets.standing(plan)
        undecided = seen is None or not seen.parity.decided
        # Without a loss compared nothing is known of it yet.
        unsettled = undecided and seen is not None and seen.parity.statistic is not None
        return self._runner.first_originals((plan,), undecided=undecided, unsettled=unsettled)

    def _order(self, plan: PlanSteps, to_come: int) -> SetOrder:
        originals, perturbed = self._originals(plan)
        self._split_if_affordable(plan, len(originals), to_come)
        arms = (*originals, *self._beginnings(plan, originals), plan)
        # A proof is worth more than a picture: whatever that takes, it takes it from no set that is still to come.
        wanted = to_come == 1 and not self.sets.looked_at(plan)
        look_s = LOOK_LEFT * self._look_s if wanted and self._look_s is not None else None
        rounds = self._rounds_of_sets(self._runner.left_s() - (look_s or 0.0), arms, to_come)
        rounds = max(self._least(plan), min(rounds, MAX_ROUNDS))
        most = self._runner.max_rounds
        return SetOrder(
            plans=arms,
            max_rounds=min(rounds, most or rounds),
            perturbed=perturbed,
            limited=(len(arms) - 1,),
            look_left_s=look_s,
        )

    def _rounds_of_sets(self, left_s: float, arms: Sequence[PlanSteps], to_come: int) -> int:
        """Return the rounds of a set: no more than tell something, as far as there is time for that in all sets."""
        costs, num_arms = self._runner.costs, len(arms)
        again_s = AGAIN * sum(step.one_off_s or 0.0 for plan in arms for step in plan)
        telling = max(TAME_ROUNDS, costs.telling_rounds(num_arms))
        return min(telling, costs.rounds_in(left_s / to_come, num_arms, again_s))

    def _beginnings(self, plan: PlanSteps, originals: Sequence[PlanSteps]) -> tuple[PlanSteps, ...]:
        """Return every beginning of a plan that is not what its parts have shown, one arm more a step.

        Otherwise the exact steps, to be proven by themselves in case nothing tells if the rest learns the same.

        Steps of a second give few losses to compare: a ResNet was 2.0 times as fast with half precision, undecided, and
        its layout (1.19) had no time left.
        """
        if self._is_split_next(plan):
            every = tuple(plan[:end] for end in range(1, len(plan)))
            return every[: max(0, self._runner.room(len(originals) + len(plan)) - len(originals) - 1)]
        seen = self.sets.standing(plan)
        if self._runner.curve_rounds <= MIN_ROUNDS or (seen is not None and seen.parity.decided):
            return ()
        exact = tuple(step for step in plan if step.numerics is Numerics.EXACT)
        num_arms = len(originals) + 2
        fits = self._runner.room(num_arms) >= num_arms
        return (exact,) if exact and exact != plan and exact == plan[: len(exact)] and fits else ()

    def _to_blame(self, plan: PlanSteps) -> list[Dropped]:
        """Return the step with which a plan failed or departed in the latest set, if it did and that can be told."""
        culprit = self._culprit(plan)
        if culprit is None:
            return []
        if culprit.num_suspects > 1 and plan_key(plan) not in self._split:
            self.split(plan)  # which step it is, a set with the plan's beginnings tells
            return []
        return [culprit]

    def _culprit(self, plan: PlanSteps) -> Dropped | None:
        order, record = self.sets.latest
        before: PlanSteps = ()
        until = order.plans.index(plan) + 1 if plan in order.plans else len(order.plans)
        for at, end in enumerate(order.plans[:until]):
            if end == before:
                continue
            arm, failure = record.arm(at), record.failure(at)
            added = [step for step in end if step not in before]
            if failure is not None:
                blameless = failure.kind in {FailureKind.ENDED, FailureKind.LATE}
                reason = f"when confirmed: {failure_reason(failure)}"
                return None if blameless else Dropped(blamed(added), reason, num_suspects=len(added))
            seen = self.sets.standing(end)
            if arm is not None and seen is not None and _departs(seen):
                reason = f"{PARITY} when confirmed: {seen.parity.evidence}"
                loose = [step for step in added if step.numerics is not Numerics.EXACT]
                touching = loose or [step for step in added if step.touches_numbers] or added
                return Dropped(blamed(added), reason, parity=True, num_suspects=len(touching))
            before = end
        return None


def _departs(seen: Standing) -> bool:
    """Whether a plan is known not to learn the same."""
    return seen.parity.decided and not seen.parity.passed
