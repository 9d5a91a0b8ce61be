"""Where plans stand after the sets of fresh processes that they were in."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import msgspec

from hotloop.model.goal import Aim, Goal
from hotloop.model.optimization import Refusal
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import ParityEvidence
from hotloop.stats.verdict import Decision, Verdict
from hotloop.tune.confirm.contention_filter import Beside, ContentionFilter
from hotloop.tune.confirm.set_pairs import MAX_SETS, MIN_SETS, SetPair, counted_pairs, decision
from hotloop.tune.executor import PlanSteps, SetOrder, SetRecord, plan_key
from hotloop.tune.goals.judge import Judged, judged
from hotloop.tune.verdict.baseline import NoiseBaseline, Originals
from hotloop.tune.verdict.reasons import not_proven

LEAST_GAIN = 1.01
"""Less than this is no gain worth a step."""
TELLING = 1.0
"""Relative half-width of an interval beyond which it tells nothing: it spans a factor of four."""

MOST_FAILED = 1
"""Sets in which a plan may fail, where it runs in others: a neighbour may have taken memory, or a port."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A plan after some sets."""

    plan: PlanSteps
    total: Decision
    parity: ParityEvidence
    num_sets: int
    beside: Beside | None = None
    """Why none of its sets tells what it gains when the user runs it; None: they do."""
    aim: Aim = Aim()
    goal: Judged | None = None
    """What its memory says of the goal; None: it is not counted."""

    @property
    def held(self) -> bool:
        """Whether it does what it is for, and learns the same."""
        reached = self.goal.reached if self.goal is not None else self.total.verdict is Verdict.FASTER
        return reached and self.parity.passed and self.beside is None

    @property
    def memory(self) -> Ratio | None:
        """Peak before over peak after; None: not counted, or too little was measured."""
        return self.goal.memory if self.goal is not None else None

    @property
    def is_over(self) -> bool:
        """Whether it is not within the limit of memory."""
        return self.goal is not None and self.goal.is_over

    @property
    def ratio(self) -> Ratio | None:
        """What it is for: its speed, or its memory; None: too little was measured."""
        return self.memory if self.aim.goal is Goal.MEMORY else self.total.ratio

    @property
    def width(self) -> float:
        """Relative half-width of the interval."""
        return math.sqrt(self.ratio.high / self.ratio.low) - 1 if self.ratio is not None else math.inf

    @property
    def speed(self) -> float:
        """The estimate of what it is for; 0: too little was measured."""
        return self.ratio.ratio if self.ratio is not None else 0.0


class ConfirmedSets:
    """The sets of a confirmation and their estimate for any plan that was an arm in them.

    Args:
        originals: what the program against itself gave.
        pace: knows which sets show the program as its user runs it.
        aim: what a plan is for.
    """

    def __init__(self, originals: Originals, pace: ContentionFilter, aim: Aim = Aim()) -> None:  # noqa: B008 - frozen
        self._originals = originals
        self._aim = aim
        self._pace = pace
        self._sets: list[tuple[SetOrder, SetRecord]] = []
        self._told: list[frozenset[int]] = []
        """The arms of each set whose plans it tells of: those that were chosen before it."""
        self._num_run: dict[str, int] = {}
        self._known: dict[str, tuple[NoiseBaseline, int, PlanSteps, Standing | None]] = {}
        """Where each plan stands, with what that was worked out from: it is asked for at every decision."""
        self._held: dict[str, Standing] = {}
        """The narrowest interval of each plan that held: it is valid at every look, so more sets take nothing back."""

    def add(
        self, order: SetOrder, record: SetRecord, chosen: Sequence[PlanSteps], *, own: bool = False
    ) -> list[Refusal]:
        """Take a set; return the steps that were not seen to act.

        What did not act was not measured: an arm counts as the plan without it.

        Args:
            order: the set.
            record: what it did.
            chosen: the plans that were chosen before it; it tells nothing of others.
            own: it was run for the proof of its last plan, and for nothing else.
        """
        idle: dict[str, Refusal] = {}
        plans = []
        for at, plan in enumerate(order.plans):
            arm = record.arm(at)
            reasons = [not_proven(arm.effects, step) if arm is not None else None for step in plan]
            idle |= {
                step.label: Refusal(step.label, reason)
                for step, reason in zip(plan, reasons, strict=True)
                if reason is not None
            }
            plans.append(tuple(step for step, reason in zip(plan, reasons, strict=True) if reason is None))
        self._sets.append((msgspec.structs.replace(order, plans=tuple(plans)), record))
        self._told.append(frozenset(at for at, plan in enumerate(order.plans) if plan and plan in chosen))
        for at in self._told[-1]:
            self._keep(plans[at])
        if own:
            last = plan_key(order.plans[-1])
            self._num_run[last] = self._num_run.get(last, 0) + 1
        return list(idle.values())

    def _keep(self, plan: PlanSteps) -> None:
        seen, before = self.standing(plan), self._held.get(plan_key(plan))
        if seen is None or (seen.parity.decided and not seen.parity.passed):
            self._held.pop(plan_key(plan), None)
        elif seen.held and (before is None or seen.width <= before.width):
            self._held[plan_key(plan)] = seen

    def held(self, plan: PlanSteps) -> Standing | None:
        """Return a plan with the narrowest interval that it held with; None: it did not."""
        found = self._held.get(plan_key(plan))
        return found if found is not None and found.plan == plan else None

    def looked_at(self, plan: PlanSteps) -> bool:
        """Whether a plan was profiled in detail."""
        arms = (record.arm(order.plans.index(plan)) for order, record in self._sets if plan in order.plans)
        return any(arm is not None and arm.deep is not None for arm in arms)

    @property
    def latest(self) -> tuple[SetOrder, SetRecord]:
        """The set that was run last."""
        return self._sets[-1]

    def num(self, plan: PlanSteps) -> int:
        """Return in how many sets a plan was an arm."""
        return len(self.of(plan))

    def of(self, plan: PlanSteps) -> list[tuple[SetOrder, SetRecord]]:
        """Return the sets in which a plan was an arm; one in which it did not become warm in time says nothing."""
        return [
            (order, record)
            for (order, record), told in zip(self._sets, self._told, strict=True)
            if plan in order.plans
            and order.plans.index(plan) in told
            and not record.is_late(order.plans.index(plan))
        ]

    def num_run(self, plan: PlanSteps) -> int:
        """Return how many sets were run for a plan's own proof."""
        return self._num_run.get(plan_key(plan), 0)

    def counted(self, plan: PlanSteps) -> list[tuple[SetOrder, SetRecord]]:
        """Return the sets that tell what a plan gains when the user runs it."""
        return [
            (order, record)
            for order, record in self.of(plan)
            if self._pace.beside(order, record, plan) is None
        ]

    def standing(self, plan: PlanSteps) -> Standing | None:
        """Return where a plan stands; None: it was in no set, failed in all of them, or in two.

        Sets beside neighbours that made another program of it do not count where others tell.
        """
        ground = self._originals.baseline()
        key = plan_key(plan)
        known = self._known.get(key)
        if known is None or known[0] is not ground or known[1] != len(self._sets) or known[2] != plan:
            self._known[key] = (ground, len(self._sets), plan, self._standing(plan, ground))
        return self._known[key][3]

    def _standing(self, plan: PlanSteps, ground: NoiseBaseline) -> Standing | None:
        pairs: list[SetPair] = []
        parities = []
        num_failed = 0
        peaks: list[tuple[float | None, int | None, int | None]] = []
        for order, record in self.of(plan):
            at = order.plans.index(plan)
            arm = record.arm(at)
            if arm is None:
                num_failed += 1
                continue
            pairs.append(
                SetPair(
                    record.log_ratios(record.originals(order), at),
                    record.disturbed,
                    self._pace.beside(order, record, plan),
                )
            )
            parities.append(ground.references.check(arm, plan))
            originals = record.originals(order)
            before = max((found[0] for one in originals if (found := record.peak(one))), default=None)
            peaks.append((record.memory_gain(originals, at), before, arm.peak_bytes))
        pairs = counted_pairs(pairs)
        if not pairs or num_failed > MOST_FAILED:
            return None
        total = decision(pairs, ground)
        return Standing(
            plan=plan,
            total=total,
            aim=self._aim,
            goal=judged(self._aim, peaks, total, (MIN_SETS, MAX_SETS)) if self._aim.counts_memory else None,
            # A set that the end of the time cut short has too few losses to say anything.
            parity=max([one for one in parities if one.measured] or parities, key=_departure),
            num_sets=len(pairs),
            beside=pairs[-1].beside,
        )

    def proven(self) -> Standing | None:
        """Return the fastest plan that held, a longer one only where it is 1% faster; None: none did."""
        return max(self._held.values(), key=lambda one: one.speed / LEAST_GAIN ** len(one.plan), default=None)

    def promising(self, dropped: Collection[str] = ()) -> Standing | None:
        """Return the fastest plan that is not proven, is not known to learn otherwise, and may beat what is."""
        proven = self.proven()
        edge = LEAST_GAIN * (proven.speed if proven else 1.0)
        return max(
            (
                one
                for one in self._all()
                if plan_key(one.plan) not in self._held
                and not one.beside
                and (one.parity.passed or not one.parity.decided)
                and one.speed > edge
                and one.width < TELLING
                and not any(step.label in dropped for step in one.plan)
            ),
            key=_speed,
            default=None,
        )

    def _all(self) -> list[Standing]:
        plans = {
            plan_key(plan): plan
            for (order, _), told in zip(self._sets, self._told, strict=True)
            for at, plan in enumerate(order.plans)
            if at in told and plan
        }
        return [seen for seen in map(self.standing, plans.values()) if seen is not None]


def _speed(one: Standing) -> float:
    return one.speed


def _departure(check: ParityEvidence) -> tuple[bool, bool, float]:
    """The worst of all sets: combinations break what singles do not, and not every time."""
    share = check.statistic / check.limit if check.statistic is not None and check.limit else 0.0
    return check.decided and not check.passed, not check.passed, share
