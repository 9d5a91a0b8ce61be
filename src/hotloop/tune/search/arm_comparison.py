"""Compares arms: the current plan, and the current plan with one more candidate, each in its own process."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from hotloop.model.optimization import Candidate
from hotloop.model.tuning import Failure, FailureKind, Measured, Trial
from hotloop.stats.log_ratio import half_width
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval
from hotloop.tune.design.patterns import with_candidate
from hotloop.tune.executor import PlanSteps, Rounds, SetOrder, SetRecord, plan_key
from hotloop.tune.search.actions import Compare
from hotloop.tune.search.arm_verdict import PRUNE_AFTER, clearly_slower, decide, parity_beside
from hotloop.tune.search.evidence import Compared
from hotloop.tune.sets.set_runner import SetRunner, are_steady
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.reasons import one_off_s

MAX_ROUNDS = 8
"""Of one set: what is not told from nothing by then differs by less than processes do: fresh ones look at it again."""
CLEAR = 6.0
"""Standard errors: what is so far from the original is settled here, its size is for the confirmation."""
NORMAL_95 = 1.96
"""Half of the interval that holds 95% of a normal variable, in standard deviations."""
METHOD = "with and without in processes of their own, side by side"
STEADY = 0.015
"""Standard error of an arm's log ratio at which it is known well enough for a screening."""


class CompareResult(NamedTuple):
    """What a set of arms gave."""

    order: SetOrder
    record: SetRecord
    trials: tuple[Trial, ...]
    evidence: tuple[Compared, ...]


class ArmComparison:
    """Compares candidates beside a plan.

    Args:
        runner: runs the sets.
        conflicts: what cannot be on together.
        interactions: names that may help or hinder one another.
        max_rounds: rounds until the program ends by itself; None: it does not.
    """

    def __init__(
        self,
        runner: SetRunner,
        conflicts: Mapping[str, frozenset[str]],
        interactions: Mapping[str, frozenset[str]],
        max_rounds: int | None,
    ) -> None:
        self._runner = runner
        self._conflicts = conflicts
        self._interactions = interactions
        self._max_rounds = max_rounds
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
        return self.unsure and self._runner.curve_rounds <= MAX_ROUNDS

    def run(self, key: str, action: Compare) -> CompareResult:
        """Run a set of arms, and return what it says of each candidate.

        Args:
            key: of the set.
            action: the plan, and what is tried beside it.
        """
        began = self._runner.left_s()
        ordered = self._order(action)
        order, record = self._runner.run(key, ordered, self._steer(ordered, action.keep_s))
        seconds = max(0.0, began - self._runner.left_s())
        ground = self._runner.originals.baseline()
        base = order.plans.index(action.base) if action.base in order.plans else 0
        trials = []
        for at, arm_plan in enumerate(order.plans if not record.is_late(base) else ()):
            added = [step for step in arm_plan if step not in action.base]
            if at == base or len(added) != 1:
                continue
            trials.append(self._trial(added[0], at, base, order, record, ground, seconds / len(order.plans)))
        self.trials += trials
        return CompareResult(order, record, tuple(trials), observations(order, record, ground, action.base))

    def _order(self, action: Compare) -> SetOrder:
        plans = self.arm_plans(action.base, action.tried)
        originals, perturbed = self._runner.first_originals(plans, undecided=self.wants_perturbed)
        room = self._runner.room(len(originals) + len(plans))
        if (
            room < len(originals) + bool(action.base) + 1
        ):  # a candidate comes before a run with rounding noise
            originals, perturbed = originals[:1], ()
        return SetOrder(
            plans=(*originals, *plans[: max(1, room - len(originals))]),
            max_rounds=min(action.rounds, self._max_rounds or action.rounds),
            perturbed=perturbed,
            passive=action.passive,
            keep_s=action.keep_s,
            ready_s=action.ready_s,
        )

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

    def _steer(self, order: SetOrder, keep_s: float) -> Callable[[Rounds], Collection[int]]:
        """Arms that are clearly slower than the original end early; the rest goes on while there is time."""
        num = len(order.plans)
        originals = [at for at, plan in enumerate(order.plans) if not plan]

        def steer(rounds: Rounds) -> Collection[int]:
            if len(rounds) >= MIN_BLOCKS and self._runner.left_s() <= keep_s:
                return ()
            if len(rounds) < PRUNE_AFTER:
                return range(num)
            others = [at for at in range(num) if at not in originals]
            if are_steady(rounds, others, steady=STEADY, clear=CLEAR):
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
        _, decision, ratio = decide(candidate, outcome, ground)
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


def observations(
    order: SetOrder, record: SetRecord, ground: NoiseBaseline, base: PlanSteps
) -> tuple[Compared, ...]:
    """Return what a set says of its plans: of the base against the original, and of each other one against the base.

    Args:
        order: the set.
        record: what it did.
        ground: the difference between equal processes.
        base: the plan that the others are compared with.
    """
    found: list[Compared] = []
    originals, bases = record.originals(order), record.same(order, base)
    if base:
        found += _observed(record, originals, order.plans.index(base), (), base, ground)
    for at, plan in enumerate(order.plans):
        if plan and plan != base and record.arm(at) is not None and bases:
            found += _observed(record, bases, at, base, plan, ground)
    return tuple(found)


def step_by_step(
    order: SetOrder, record: SetRecord, ground: NoiseBaseline, plan: PlanSteps
) -> tuple[Compared, ...]:
    """Return what a set says of a plan by its beginnings: of each against the one before it.

    Args:
        order: the set.
        record: what it did.
        ground: the difference between equal processes.
        plan: whose beginnings are arms of the set.
    """
    found: list[Compared] = []
    before: PlanSteps = ()
    for end in range(1, len(plan) + 1):
        beginning = plan[:end]
        if beginning in order.plans:
            at = order.plans.index(beginning)
            found += _observed(record, record.same(order, before), at, before, beginning, ground)
            before = beginning
    return tuple(found)


def _observed(
    record: SetRecord,
    before: Sequence[int],
    at: int,
    base: PlanSteps,
    plan: PlanSteps,
    ground: NoiseBaseline,
) -> list[Compared]:
    logs = record.log_ratios(before, at) if before and record.arm(at) is not None else ()
    if len(logs) < MIN_BLOCKS:
        return []
    ratio = ratio_interval([logs], prior_sd=ground.spread.sd, prior_df=ground.spread.df)
    # A few blocks of one pair of processes say little of their own scatter: so does Student's t.
    deviation = half_width(ratio) / NORMAL_95
    return [
        Compared(
            after=frozenset(step.label for step in plan),
            before=frozenset(step.label for step in base),
            value=math.log(ratio.ratio),
            variance=deviation**2,
            memory=record.memory_gain(before, at),
        )
    ]


def _label(base: PlanSteps, plan: PlanSteps, candidate: Candidate) -> str:
    """A candidate beside a plan without what it may hinder is something else than beside the plan."""
    kept = [step for step in base if step.name != candidate.name]
    beside = all(step in plan for step in kept)
    return candidate.label if beside else plan_key(plan)
