"""The confirmation: the plan in fresh processes against the original program; only this number is quoted.

Picking the best of many flatters, so what was seen in the search is not used. A set holds the original, every prefix
of the plan, and the plan; neighbours in it give each step's factor, and the factors multiply to the total by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Contention, Failure, ParityEvidence, PlanStep
from hotloop.stats.verdict import Decision, Verdict, decide
from hotloop.tune.clock import Budget
from hotloop.tune.executor import Executor, PlanSteps, SetFailed, SetOrder, SetRecord
from hotloop.tune.journal import Journal, once
from hotloop.tune.judge import one_off_s
from hotloop.tune.search import Ground

MIN_SETS, MAX_SETS = 3, 6
SET_ROUNDS = 4
"""Blocks of each arm in a set: pairs are the samples, more blocks in one pair say little more."""


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """What the confirmation of one plan gave."""

    plan: PlanSteps
    decision: Decision
    steps: tuple[Decision, ...]
    """Each step's own factor; empty where prefixes had no room beside one another."""
    records: tuple[SetRecord, ...]
    parity: ParityEvidence | None
    failure: Failure | None = None


class Confirmer:
    """Confirms plans.

    Args:
        executor: runs the sets.
        journal: keeps them.
        budget: the time there is.
        ground: floor, spread and reference losses.
        progress: told of what is measured.
    """

    def __init__(
        self, executor: Executor, journal: Journal, budget: Budget, ground: Ground, progress: Callable[[str], None]
    ) -> None:
        self._executor = executor
        self._journal = journal
        self._budget = budget
        self._ground = ground
        self._progress = progress

    def run(self, plan: PlanSteps) -> tuple[Confirmation, list[Refusal]]:
        """Confirm a plan; steps that do not hold are taken out and the rest is confirmed anew."""
        dropped: list[Refusal] = []
        while True:
            confirmation = self._confirm(plan)
            losers = self._losers(confirmation)
            if not losers:
                return confirmation, dropped
            dropped.extend(losers)
            names = {refusal.name for refusal in losers}
            plan = tuple(step for step in plan if step.label not in names)
            if not plan:
                return self._empty(confirmation), dropped

    def _confirm(self, plan: PlanSteps) -> Confirmation:
        arms = self._arms(plan)
        records: list[SetRecord] = []
        while True:
            number = len(records)
            key = f"confirm|{'+'.join(step.label for step in plan)}|{number}"
            self._progress(f"confirming in fresh processes, set {number + 1}")
            began = self._budget.now()
            record = once(self._journal, key, SetRecord | SetFailed, lambda: self._set(arms))
            spent = self._budget.now() - began
            if isinstance(record, SetFailed):
                return self._failed(plan, record)
            records.append(record)
            decision = self._decision(records, 0, len(arms) - 1)
            enough = len(records) >= MIN_SETS and (not decision.more or self._budget.left() < spent)
            if enough:
                return self._closed(plan, records, decision, len(arms))

    def _arms(self, plan: PlanSteps) -> tuple[PlanSteps, ...]:
        prefixes = tuple(plan[:length] for length in range(len(plan) + 1))
        return prefixes if self._executor.fits(len(prefixes)) else (prefixes[0], prefixes[-1])

    def _set(self, arms: tuple[PlanSteps, ...]) -> SetRecord | SetFailed:
        rounds = min(SET_ROUNDS, self._ground.max_rounds or SET_ROUNDS)
        return self._executor.run(SetOrder(plans=arms, max_rounds=rounds, fresh=True), lambda _: False)

    def _decision(self, records: Sequence[SetRecord], slow: int, fast: int) -> Decision:
        spread = self._ground.spread
        return decide(
            [record.log_ratios(slow, fast) for record in records],
            floor=self._ground.floor,
            min_pairs=MIN_SETS,
            max_pairs=MAX_SETS,
            prior_sd=spread.sd,
            prior_df=spread.df,
        )

    def _closed(
        self, plan: PlanSteps, records: Sequence[SetRecord], decision: Decision, num_arms: int
    ) -> Confirmation:
        neighbours = range(num_arms - 1) if num_arms == len(plan) + 1 else ()
        steps = tuple(self._decision(records, at, at + 1) for at in neighbours)
        return Confirmation(
            plan=plan, decision=decision, steps=steps, records=tuple(records), parity=self._parity(plan, records)
        )

    def _parity(self, plan: PlanSteps, records: Sequence[SetRecord]) -> ParityEvidence:
        """The whole plan's losses against the original's: combinations break what singles do not."""
        checks = [self._ground.references.check(record.arms[-1].losses, plan) for record in records]
        return next((check for check in checks if not check.passed), checks[0])

    def _losers(self, confirmation: Confirmation) -> list[Refusal]:
        """Return the steps that have to go: all that are not faster; on a parity failure the riskiest one."""
        if confirmation.failure is not None:
            last = confirmation.plan[-1]
            return [Refusal(last.label, f"failed when the plan was confirmed: {confirmation.failure.message}")]
        if confirmation.parity is not None and not confirmation.parity.passed:
            culprit = _riskiest(confirmation.plan)
            return [Refusal(culprit.label, f"parity of the whole plan: {confirmation.parity.evidence}")]
        refusals = []
        for candidate, decision in zip(confirmation.plan, confirmation.steps, strict=False):
            if decision.verdict is not Verdict.FASTER:
                refusals.append(Refusal(candidate.label, f"{decision.verdict.value} when confirmed: {decision.reason}"))
        if not confirmation.steps and confirmation.decision.verdict is not Verdict.FASTER:
            refusals = [
                Refusal(step.label, f"the plan was {confirmation.decision.verdict.value}: {confirmation.decision.reason}")
                for step in confirmation.plan
            ]
        return refusals

    def _failed(self, plan: PlanSteps, record: SetFailed) -> Confirmation:
        invalid = Decision(Verdict.INVALID, None, False, record.failure.message)
        return Confirmation(plan=plan, decision=invalid, steps=(), records=(), parity=None, failure=record.failure)

    def _empty(self, confirmation: Confirmation) -> Confirmation:
        return Confirmation(
            plan=(), decision=confirmation.decision, steps=(), records=confirmation.records, parity=None
        )


def _riskiest(plan: Sequence[Candidate]) -> Candidate:
    from hotloop.model.optimization import Numerics

    order = (Numerics.EXACT, Numerics.TOLERANCE, Numerics.SEMANTIC)
    return max(plan, key=lambda step: order.index(step.numerics))


def plan_steps(confirmation: Confirmation) -> tuple[PlanStep, ...]:
    """Return the plan's steps with the factors that were confirmed, scaled to multiply to the total exactly.

    The total and the factors are robust means of the same rounds; what they differ by is rounding of those means, and
    is spread over the factors and their intervals.
    """
    total = confirmation.decision.ratio
    if not confirmation.plan or total is None:
        return ()
    ratios = [decision.ratio or Ratio(1.0, 1.0, 1.0) for decision in confirmation.steps]
    if not ratios:
        ratios = [Ratio(total.ratio ** (1 / len(confirmation.plan)), total.low, total.high) for _ in confirmation.plan]
    product = 1.0
    for ratio in ratios:
        product *= ratio.ratio
    scale = (total.ratio / product) ** (1 / len(ratios))
    return tuple(
        PlanStep(
            name=candidate.name,
            params=candidate.params,
            ratio=ratio.ratio * scale,
            low=ratio.low * scale,
            high=ratio.high * scale,
            numerics=candidate.numerics,
            break_even_steps=_break_even(confirmation.records, at),
            evidence=_evidence(confirmation.records, at, candidate),
        )
        for at, (candidate, ratio) in enumerate(zip(confirmation.plan, ratios, strict=True))
    )


def _break_even(records: Sequence[SetRecord], at: int) -> int | None:
    """Steps after which a step's one-off cost is earned back."""
    costs, gains = [], []
    for record in records:
        if at + 1 >= len(record.arms):
            return None
        before, after = record.arms[at], record.arms[at + 1]
        costs.append(one_off_s(before.first_steps_s, after.first_steps_s) or 0.0)
        gains.append(before.step_s - after.step_s)
    cost, gain = sorted(costs)[len(costs) // 2], sorted(gains)[len(gains) // 2]
    return round(cost / gain) if cost > 0 and gain > 0 else None


def _evidence(records: Sequence[SetRecord], at: int, candidate: Candidate) -> str:
    arm = records[-1].arms[min(at + 1, len(records[-1].arms) - 1)]
    return next((effect.evidence for effect in arm.effects if effect.name == candidate.name), "")


def total_contention(reports: Sequence[Contention]) -> Contention:
    """Return what others did over a whole session."""
    shares = [report.max_foreign_share for report in reports if report.max_foreign_share is not None]
    return Contention(
        num_blocks=sum(report.num_blocks for report in reports),
        num_void=sum(report.num_void for report in reports),
        num_noisy=sum(report.num_noisy for report in reports),
        max_foreign_share=max(shares, default=None),
    )
