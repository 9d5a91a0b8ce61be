"""Arms beside one another: the plan so far, and the plan with one more thing on that needs a process of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Measured, Trial
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.design.patterns import exclude, with_candidate
from hotloop.tune.executor import PlanSteps, Rounds, SetOrder, SetRecord
from hotloop.tune.search.arm_verdict import (
    PRUNE_AFTER,
    clearly_slower,
    clearly_worse,
    decide,
    parity_beside,
    proven_slower,
)
from hotloop.tune.search.arms import Arms, are_steady
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.decision import (
    ACCEPTED,
    NO_DIFFERENCE,
    one_off_s,
)

MAX_ROUNDS = 8
"""Of one set: what is not told from nothing by then differs by less than processes do: fresh ones look at it again."""
WORTH_A_LOOK, MAX_LOOKS = 1.02, 3
"""What was estimated higher and not told from nothing is looked at again, in fresh processes, where there is time."""
CLEAR = 6.0
"""Standard errors: what is so far from the original is settled here, its size is for the confirmation."""
METHOD = "with and without in processes of their own, side by side"
STEADY = 0.015
"""Standard error of an arm's log ratio at which it is known well enough for a screening."""
ROOM = 1.1
"""A variant that is not proven slower than this is taken for what it leaves room for, as long as what holds the program
back is still to move: one loader worker was 1.07 of two, and held back all that made the step itself faster."""


class Contest:
    """Finds what helps beside a plan.

    Args:
        arms: runs the sets.
        conflicts: what cannot be on together.
        interactions: names that may help or hinder one another.
        progress: told of what is tried.
    """

    def __init__(
        self,
        arms: Arms,
        conflicts: Mapping[str, frozenset[str]],
        interactions: Mapping[str, frozenset[str]],
        progress: Callable[[str], None],
    ) -> None:
        self._arms = arms
        self._conflicts = conflicts
        self._interactions = interactions
        self._progress = progress
        self._pairs: dict[str, list[tuple[float, ...]]] = {}
        self.trials: list[Trial] = []

    @property
    def unsure(self) -> bool:
        """Whether it is not known of some trial if it learns the same: one more perturbed run may tell."""
        outcomes = [trial.outcome for trial in self.trials]
        checks = [one.parity for one in outcomes if isinstance(one, Measured) and one.parity is not None]
        return not checks or not all(check.decided for check in checks)

    @property
    def wants_perturbed(self) -> bool:
        """Whether a set of arms may hold a run with rounding noise: one that is long enough to be compared with."""
        return self.unsure and self._arms.curve_rounds <= MAX_ROUNDS

    def undecided(self) -> list[Candidate]:
        """Return what may still help, the most promising first: fresh processes may settle it."""
        latest = {trial.candidate.label: trial for trial in self.trials}
        found = [
            trial
            for label, trial in latest.items()
            if trial.decision.startswith(NO_DIFFERENCE)
            and trial.ratio is not None
            and trial.ratio.ratio > WORTH_A_LOOK
            and len(self._pairs.get(label, ())) < MAX_LOOKS
        ]
        ranked = sorted(found, key=lambda trial: -trial.ratio.ratio if trial.ratio else 0.0)
        return [trial.candidate for trial in ranked]

    def open(self) -> list[Candidate]:
        """Return what may gain something all the same, the most promising first."""
        latest = {trial.candidate.label: trial for trial in self.trials}
        found = [
            (trial.ratio.high, trial.candidate)
            for trial in latest.values()
            if trial.decision.startswith(NO_DIFFERENCE) and trial.ratio and trial.ratio.high > WORTH_A_LOOK
        ]
        return [candidate for _, candidate in sorted(found, key=lambda one: -one[0])]

    def run(
        self,
        number: int,
        plan: PlanSteps,
        tried: Sequence[Candidate],
        order: SetOrder,
        until_left_s: float,
        worth: float = 1.0,
    ) -> PlanSteps:
        """Run a set of arms, keep what it says of each candidate, and return the plan with what helps.

        Args:
            number: of the set.
            plan: what is believed in.
            tried: the candidates.
            order: the set.
            until_left_s: time that is kept for a proof.
            worth: gain that is looked for; what is clearly below it is not measured more exactly.
        """
        self._progress(f"comparing side by side: {', '.join(one.label for one in tried) or 'the plan'}")
        began = self._arms.left_s()
        order, record = self._arms.run(
            f"contest|{number}", order, self._steer(order, until_left_s, math.log(worth))
        )
        seconds = max(0.0, began - self._arms.left_s())
        ground = self._arms.originals.baseline()
        base = order.plans.index(plan) if plan in order.plans else 0
        gains: dict[int, Ratio] = {}
        for at, arm_plan in enumerate(order.plans):
            added = [step for step in arm_plan if step not in plan]
            if at == base or len(added) != 1:
                continue
            trial = self._trial(added[0], at, base, order, record, ground, seconds / len(order.plans))
            self.trials.append(trial)
            if trial.decision == ACCEPTED and trial.ratio is not None:
                gains[at] = trial.ratio
        return self._best(plan, base, order, record, gains, ground, ROOM if worth > 1 else 1.0)

    def arm_plans(self, plan: PlanSteps, tried: Sequence[Candidate]) -> list[PlanSteps]:
        """Return the plan, and the plan with each candidate; also without what a candidate may hinder."""
        plans: list[PlanSteps] = [plan] if plan else []
        for candidate in tried:
            plans.append(with_candidate(plan, candidate, self._conflicts))
            rivals = self._interactions.get(candidate.name, frozenset())
            alone = tuple(step for step in plan if step.name not in rivals)
            if alone != plan:
                plans.append(with_candidate(alone, candidate, self._conflicts))
        return plans

    def _steer(
        self, order: SetOrder, until_left_s: float, worth: float
    ) -> Callable[[Rounds], Collection[int]]:
        """Arms that are clearly slower than the original end early; the rest goes on while there is time."""
        num = len(order.plans)
        originals = [at for at, plan in enumerate(order.plans) if not plan]

        def steer(rounds: Rounds) -> Collection[int]:
            if len(rounds) >= MIN_BLOCKS and self._arms.left_s() <= until_left_s:
                return ()
            if len(rounds) < PRUNE_AFTER:
                return range(num)
            others = [at for at in range(num) if at not in originals]
            if are_steady(rounds, others, steady=STEADY, clear=CLEAR, worth=worth):
                return ()
            return [at for at in range(num) if at in originals or not clearly_slower(rounds, originals, at)]

        return steer

    def _trial(
        self,
        candidate: Candidate,
        at: int,
        base: int,
        order: SetOrder,
        record: SetRecord,
        ground: NoiseBaseline,
        seconds: float,
    ) -> Trial:
        plan, failure = order.plans[at], record.failure(at)
        outcome = failure or self._measured(candidate, at, base, order, record, ground)
        decision, ratio = decide(candidate, outcome, ground)
        return Trial(
            key=f"arm|{'+'.join(step.label for step in plan)}",
            candidate=candidate,
            incumbent=order.plans[base],
            outcome=outcome,
            decision=decision,
            ratio=ratio,
            seconds=seconds,
            predicted=candidate.predicted,
            method=METHOD,
        )

    def _measured(
        self,
        candidate: Candidate,
        at: int,
        base: int,
        order: SetOrder,
        record: SetRecord,
        ground: NoiseBaseline,
    ) -> Measured | Failure:
        arm, before = record.arm(at), record.arm(base)
        late = record.failure(base)
        if late is not None and late.kind is FailureKind.LATE:
            return late
        if arm is None or before is None:
            message = "the plan that it is compared with failed"
            return Failure(kind=FailureKind.CRASH, message=message)
        pairs = self._pairs.setdefault(_label(order.plans[base], order.plans[at], candidate), [])
        pairs.append(record.log_ratios(record.same(order, order.plans[base]), at))
        return Measured(
            pairs=tuple(pairs),
            step_s=(before.step_s, arm.step_s),
            effects=tuple(effect for effect in arm.effects if effect.name == candidate.name),
            parity=parity_beside(
                ground.references, candidate, (before, order.plans[base]), (arm, order.plans[at])
            ),
            one_off_s=one_off_s(before, arm),
            peak_bytes=(before.peak_bytes, arm.peak_bytes),
            contention=record.contention,
        )

    def _best(
        self,
        plan: PlanSteps,
        base: int,
        order: SetOrder,
        record: SetRecord,
        gains: Mapping[int, Ratio],
        ground: NoiseBaseline,
        room: float,
    ) -> PlanSteps:
        """Return the base of the fastest arm with all that helped and goes with it."""
        best = plan
        if plan and clearly_worse(record, order, base, ground):
            best = ()
        ranked = self._ranked(plan, order, record, gains, ground, room)
        if ranked and not all(step in order.plans[ranked[0]] for step in best):
            # The fastest arm is without something of the plan: that hinders it.
            best = tuple(step for step in order.plans[ranked[0]] if step in plan)
        for at in ranked:
            candidate = _added(order, at, plan)
            if not any(exclude(candidate, step, self._conflicts) for step in best if step not in plan):
                best = with_candidate(best, candidate, self._conflicts)
        return best

    def _ranked(
        self,
        plan: PlanSteps,
        order: SetOrder,
        record: SetRecord,
        gains: Mapping[int, Ratio],
        ground: NoiseBaseline,
        room: float,
    ) -> list[int]:
        """Return the arms that helped, the fastest first; of variants that cannot be told apart the likeliest one.

        What holds a program back is another thing once more is on: of one and two loader workers that seem to be
        equal, two leave more room for what makes the step itself faster.
        """
        ranked: list[int] = []
        for at in sorted(gains, key=lambda at: -gains[at].ratio):
            name = _added(order, at, plan).name
            if any(_added(order, other, plan).name == name for other in ranked):
                continue
            variants = [other for other in gains if _added(order, other, plan).name == name]
            equal = [
                other
                for other in variants
                if other == at or not proven_slower(record.log_ratios((at,), other), ground, room)
            ]
            ranked.append(min(equal))
        return ranked


def _added(order: SetOrder, at: int, plan: PlanSteps) -> Candidate:
    return next(step for step in order.plans[at] if step not in plan)


def _label(base: PlanSteps, plan: PlanSteps, candidate: Candidate) -> str:
    """A candidate beside a plan without what it may hinder is something else than beside the plan."""
    kept = [step for step in base if step.name != candidate.name]
    beside = all(step in plan for step in kept)
    return candidate.label if beside else "+".join(step.label for step in plan)
