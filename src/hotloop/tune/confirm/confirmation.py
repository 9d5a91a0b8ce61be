"""The confirmation: the plan in fresh processes against the original program; only this number is quoted.

Picking the best of many flatters, so what was seen in the search is not used. A set holds the original and the plan,
and, where there is time, the beginnings of the plan between them: neighbours give the factor of each step that needs a
process of its own, and a beginning that was run as it is can be proven itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from hotloop.model.optimization import Candidate, Numerics, Refusal
from hotloop.model.tuning import FailureKind
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.confirm.evidence import MAX_SETS, MIN_SETS, TELLING, WORTH, Confirmation, ConfirmedSets
from hotloop.tune.confirm.likely import why_open
from hotloop.tune.confirm.usual_pace import UsualPace
from hotloop.tune.executor import PlanSteps, SetOrder
from hotloop.tune.search.arms import Arms, while_time
from hotloop.tune.search.batches import AGAIN, PROOF_ROUNDS
from hotloop.tune.search.belief import exact_first
from hotloop.tune.verdict.decision import PARITY, blamed, failure_reason

MIN_ROUNDS, TAME_ROUNDS, ROUNDS, MAX_ROUNDS = 4, 6, 10, 16
"""Of a set. Pairs are the samples; with fewer than six blocks the wild ones among them cannot be told."""
LOOK_LEFT = 1.5
"""Times what detailed profiling is expected to take: with less time left it is not begun. Compiled code took 46 s
instead of 17."""
HOPED = 1.2
"""A guess is given up after one set only where that leaves no room for so much. Of one [0.80, 1.11] was seen, of
another [0.51, 1.45], which is nothing against it."""
WIDE = 0.05
"""Half-width of the whole plan's interval, relative, above which more sets are worth the time that is left."""


class Confirmer:
    """Confirms plans.

    Args:
        arms: runs the sets.
        switchable: whether a step can be switched in a running program: its factor then needs no arm.
        progress: told of what is measured.
        pace: knows which sets show the program as its user runs it.
        look_s: seconds that detailed profiling of the program and the plan takes; None: it is left out.
    """

    def __init__(
        self,
        arms: Arms,
        switchable: Callable[[Candidate], bool],
        progress: Callable[[str], None],
        pace: UsualPace,
        look_s: float | None = None,
    ) -> None:
        self._look_s = look_s
        self._arms = arms
        self.switchable = switchable
        self._progress = progress
        self._rounds = MAX_ROUNDS
        self._to_the_end = False
        """Nothing is left that time would be better spent on."""
        self.goals: list[PlanSteps] = []
        self._pace = pace
        self._in_vain: Counter[str] = Counter()
        """Sets of each plan that did not tell of it, because of neighbours; not those of a session before."""
        self.sets = ConfirmedSets(arms.originals, pace)
        self.dropped: dict[str, Refusal] = {}
        self.instead: Callable[[PlanSteps, Sequence[Refusal]], PlanSteps] = lambda left, _: left

    def run(self, plan: PlanSteps, until_left_s: float = 0.0, *, guessed: bool = False) -> None:
        """Confirm a plan until it is settled or the time is over; what fails in it is taken out.

        One that was confirmed before goes on, where more sets tell more.

        Args:
            plan: what is on.
            until_left_s: time that something else is worth.
            guessed: nothing of it was measured: one set in which it gains nothing is enough against it.
        """
        self._rounds = MAX_ROUNDS
        self._settle(plan, until_left_s, guessed=guessed)
        if self._in_vain[_labels(plan)] and not self._arms.noisy():
            self._settle(plan, until_left_s, guessed=guessed)  # the neighbours have left

    def prove(self, plan: PlanSteps) -> None:
        """Run the sets that a proof needs, and no more."""
        self._rounds = PROOF_ROUNDS
        self._settle(plan, math.inf, guessed=False)

    def exhaust(self) -> None:
        """Use what time is left for what may be faster than what is proven, although few sets settle it."""
        self._to_the_end = True
        open_ = self.promising()
        if open_ is not None:
            self._settle(open_.plan, 0.0, guessed=False)
        self._to_the_end = False

    def undecided(self, plan: PlanSteps) -> bool:
        """Whether a plan had the sets of a proof, and they cannot tell if it learns the same."""
        seen = self.sets.standing(plan)
        return seen is not None and seen.num_sets >= MIN_SETS and not seen.parity.decided

    def beside(self, plan: PlanSteps) -> tuple[PlanSteps, str]:
        """Return the steps of a plan of which no set tells, because neighbours gave them what they gain, and why."""
        seen = self.sets.standing(tuple(step for step in plan if step.label not in self.dropped))
        if seen is None or seen.beside is None:
            return (), ""
        return seen.beside.heeding, why_open(seen)

    def tells(self, plan: PlanSteps) -> bool:
        """Whether a proof has time to run a plan with and without its last step side by side."""
        ordered = exact_first(plan)
        at = ordered.index(plan[-1])
        ends = {0, *(len(end) for end in self._ends(ordered, self._originals(ordered)[0], MIN_SETS))}
        return {at, at + 1} <= ends

    def _settle(self, plan: PlanSteps, until_left_s: float, *, guessed: bool) -> None:
        plan = tuple(step for step in plan if step.label not in self.dropped)
        while plan:
            if plan not in self.goals:
                self.goals.append(plan)
            plan = self._confirm(plan, until_left_s, guessed=guessed)

    def proven(self) -> Confirmation | None:
        """Return the fastest plan that held; None: none did."""
        return self.sets.proven()

    def promising(self) -> Confirmation | None:
        """Return the fastest plan that is not proven, may be faster than what is, and learns the same."""
        return self.sets.promising(self.dropped)

    def _confirm(self, plan: PlanSteps, until_left_s: float, *, guessed: bool) -> PlanSteps:
        """Run sets; return the plan that is left where a step has to go, empty: it is settled."""
        while self._wanted(plan, until_left_s):
            num = self.sets.num(plan)
            gone = {refusal.name: refusal for refusal in self._set(plan)}
            if guessed and not gone:
                gone = self._refuted(plan)
            if gone:
                self.dropped |= gone
                left = tuple(step for step in plan if step.label not in gone)
                return self.instead(left, tuple(gone.values()))
            # A set of the session before, whose steps were others of these names, does not tell of this plan.
            if self.sets.num(plan) == num:
                break
        # What gains from neighbours cannot be told beside them; the rest can.
        heeding, _ = self.beside(plan)
        return tuple(step for step in plan if step not in heeding) if heeding else ()

    def _refuted(self, plan: PlanSteps) -> dict[str, Refusal]:
        """Return the steps of a guess whose first set shows no gain; one that leaves room for a gain stays."""
        seen = self.sets.standing(plan)
        told = seen is not None and seen.num_sets == 1 and seen.beside is None
        ratio = seen.total.ratio if seen is not None and told else None
        if ratio is None or ratio.ratio > 1 or ratio.high > HOPED:
            return {}
        why = f"no gain in a set of fresh processes: {ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
        return {step.label: Refusal(step.label, why) for step in plan}

    def _wanted(self, plan: PlanSteps, until_left_s: float) -> bool:
        """Whether one more set is worth its time, and fits: a single pair is better than nothing."""
        num, told = self.sets.num(plan), len(self.sets.counted(plan))
        if self._arms.knows(self._key(plan, num)):
            return True
        seen, arms = self.sets.standing(plan), (*self._originals(plan)[0], plan)
        if num and (seen is None or _departs(seen)):
            return False
        if self._is_in_vain(plan):
            return False
        if seen is None or told < MIN_SETS:
            # The last set of a proof is worth being a little late.
            late_s = self._arms.grace_s if told == MIN_SETS - 1 else 0.0
            # Without a curve of losses a first set still says what is likely.
            least = self._least(plan) if num else MIN_ROUNDS
            return not _hopeless(seen) and self._fits(1, arms, -late_s, least)
        if told >= MAX_SETS:
            return False
        wide = seen.held and seen.width > WIDE
        # One more run with rounding noise may tell whether it learns the same.
        undecided = not seen.parity.decided and self._arms.wants_perturbed(unsettled=True)
        unlikely = self._to_the_end and not seen.held and seen.speed > WORTH
        return (seen.total.more or wide or undecided or unlikely) and self._fits(1, arms, until_left_s)

    def _is_in_vain(self, plan: PlanSteps) -> bool:
        """Whether neighbours kept so many sets from telling of a plan that no more are run while they are there."""
        num = self._in_vain[_labels(plan)]
        return num >= MAX_SETS or (num >= MIN_SETS and self._arms.noisy())

    def _fits(
        self, num_sets: int, arms: Sequence[PlanSteps], until_left_s: float, rounds: int = MIN_ROUNDS
    ) -> bool:
        rounds = min(rounds, self._arms.max_rounds or rounds)
        set_s = self._arms.costs.set_s(len(arms), rounds, _again_s(arms))
        return num_sets * set_s <= self._arms.left_s() - until_left_s

    def _key(self, plan: PlanSteps, number: int) -> str:
        return f"confirm|{_labels(plan)}|{number}"

    def _set(self, plan: PlanSteps) -> list[Refusal]:
        """Run a set; return the steps that have to go."""
        number = self.sets.num(plan)
        seen = self.sets.standing(plan)
        known = seen is not None and seen.beside is None and seen.width < TELLING
        so_far = f", so far {seen.ratio}" if seen is not None and known else ""
        self._progress(f"confirming the plan in fresh processes ({number + 1}){so_far}")
        to_come = max(1, MIN_SETS - len(self.sets.counted(plan)))
        order = self._order(plan, to_come)
        steer = while_time(
            self._arms.left_s,
            len(order.plans),
            MIN_BLOCKS,
            self._arms.grace_s,
            self._least(plan),
            # Beside neighbours a set takes several times as long as it was expected to.
            rest_s=self._arms.left_s() * (to_come - 1) / to_come,
        )
        fresh = not self._arms.knows(self._key(plan, number))
        order, record = self._arms.run(self._key(plan, number), order, steer)
        idle = self.sets.add(order, record)
        if fresh and plan in order.plans and self._pace.beside(order, record, plan) is not None:
            self._in_vain[_labels(plan)] += 1
        culprit = self._culprit()
        return [*idle, *([culprit] if culprit is not None else [])]

    def _least(self, plan: PlanSteps) -> int:
        """The fewest rounds of a set; until it is known if the plan learns the same they leave a curve of losses."""
        return MIN_ROUNDS if self._decided(plan) else max(MIN_ROUNDS, self._arms.curve_rounds)

    def _decided(self, plan: PlanSteps) -> bool:
        """Whether it is known if a plan learns the same."""
        seen = self.sets.standing(plan)
        return seen is not None and seen.parity.decided

    def _originals(self, plan: PlanSteps) -> tuple[list[PlanSteps], tuple[int, ...]]:
        seen = self.sets.standing(plan)
        undecided = seen is None or not seen.parity.decided
        # Without a loss compared nothing is known of it yet.
        unsettled = undecided and seen is not None and seen.parity.statistic is not None
        return self._arms.first_originals((plan,), undecided=undecided, unsettled=unsettled)

    def _order(self, plan: PlanSteps, to_come: int) -> SetOrder:
        originals, perturbed = self._originals(plan)
        arms = (*originals, *self._ends(plan, originals, to_come))
        # A proof is worth more than a picture: whatever that takes, it takes it from no set that is still to come.
        wanted = to_come == 1 and not self.sets.looked_at(plan)
        look_s = LOOK_LEFT * self._look_s if wanted and self._look_s is not None else None
        rounds = self._rounds_of_sets(plan, self._arms.left_s() - (look_s or 0.0), arms, to_come)
        rounds = max(self._least(plan), min(rounds, ROUNDS if len(arms) > 2 else self._rounds))
        most = self._arms.max_rounds
        return SetOrder(
            plans=arms,
            max_rounds=min(rounds, most or rounds),
            perturbed=perturbed,
            look_left_s=look_s,
        )

    def _rounds_of_sets(self, plan: PlanSteps, left_s: float, arms: Sequence[PlanSteps], to_come: int) -> int:
        """Return the rounds of a set: no more than tell something, unless there is time for that in all sets."""
        costs, num_arms, again_s = self._arms.costs, len(arms), _again_s(arms)
        all_s = left_s / max(1, MAX_SETS - len(self.sets.counted(plan)))
        telling = max(TAME_ROUNDS, costs.telling_rounds(num_arms), costs.rounds_in(all_s, num_arms, again_s))
        return min(telling, costs.rounds_in(left_s / to_come, num_arms, again_s))

    def _ends(self, plan: PlanSteps, originals: Sequence[PlanSteps], to_come: int) -> tuple[PlanSteps, ...]:
        """The plan and, where there is time, what it is with and without each step that needs a process of its own.

        First of all its exact beginning, where it is hard to tell if the whole learns the same.
        """
        exact = self._exact_beginning(plan)
        processes = [at for at, step in enumerate(plan) if not self.switchable(step)]
        splits = sorted(
            {end for at in processes for end in (at, at + 1)} - {0, exact, len(plan)}, reverse=True
        )
        for num in range(len(splits), -1, -1):
            chosen = sorted({*splits[:num], exact} - {0})
            ends = (*(plan[:end] for end in chosen), plan)
            arms = (*originals, *ends)
            rounds = max(ROUNDS if num else MIN_ROUNDS, self._least(plan))
            if self._arms.room(len(arms)) >= len(arms) and self._fits(to_come, arms, 0.0, rounds):
                return ends
        return (plan,)

    def _exact_beginning(self, plan: PlanSteps) -> int:
        """Return how many steps are to be proven by themselves, in case nothing tells if the rest learns the same.

        Steps of a second give few losses to compare: a ResNet was 2.0 times as fast with half precision, undecided, and
        its layout (1.19) had no time left. 0: none.
        """
        if self._arms.curve_rounds <= MIN_ROUNDS or self._decided(plan):
            return 0
        num = next((at for at, step in enumerate(plan) if step.numerics is not Numerics.EXACT), 0)
        return num if num < len(plan) else 0

    def _culprit(self) -> Refusal | None:
        """Return the step with which the latest set failed, departed, or lost time."""
        order, record = self.sets.latest
        before: PlanSteps = ()
        for at, end in enumerate(order.plans):
            if end == before:
                continue
            arm, failure = record.arm(at), record.failure(at)
            if failure is not None:
                blameless = failure.kind in {FailureKind.ENDED, FailureKind.LATE}
                return (
                    None if blameless else _refusal(end, before, f"when confirmed: {failure_reason(failure)}")
                )
            seen = self.sets.standing(end)
            if arm is not None and seen is not None and _departs(seen):
                return _refusal(end, before, f"{PARITY} when confirmed: {seen.parity.evidence}")
            lost = self.sets.between(before, end) if before else None
            if lost is not None and self.sets.num(end) > 1 and lost.ratio is not None and lost.ratio.high < 1:
                return Refusal(end[-1].label, f"slower beside the steps before it: {lost.reason}")
            before = end
        seen = self.sets.standing(before)
        if len(before) > 1 and _hopeless(seen):
            assert seen is not None
            return _refusal(before, (), f"the whole that it was part of was slower: {seen.total.reason}")
        return None


def _labels(plan: PlanSteps) -> str:
    return "+".join(step.label for step in plan)


def _again_s(arms: Sequence[PlanSteps]) -> float:
    """Return what the first steps of arms take more although each plan was started before."""
    return AGAIN * sum(step.one_off_s or 0.0 for plan in arms for step in plan)


def _departs(seen: Confirmation) -> bool:
    """Whether a plan is known not to learn the same."""
    return seen.parity.decided and not seen.parity.passed


def _hopeless(seen: Confirmation | None) -> bool:
    """Whether two sets or more say that a plan is slower."""
    return (
        seen is not None
        and seen.beside is None
        and seen.num_sets > 1
        and seen.total.ratio is not None
        and seen.total.ratio.high < 1
    )


def _refusal(end: PlanSteps, before: Sequence[Candidate], reason: str) -> Refusal:
    added = [step for step in end if step not in before]
    return Refusal(blamed(added).label, reason)
