"""Where the steps of a plan stand after some sets of its confirmation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hotloop.model.optimization import Candidate, Refusal
from hotloop.model.tuning import ParityEvidence
from hotloop.stats.verdict import Decision, Verdict, decide, margin
from hotloop.tune.executor import PlanSteps, SetRecord
from hotloop.tune.verdict.baseline import NoiseBaseline

MIN_SETS, MAX_SETS = 3, 6


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that held: it is faster as a whole, each step of it is, and it learns the same."""

    plan: PlanSteps
    total: Decision
    steps: tuple[Decision, ...]
    """Each step's own factor."""
    records: tuple[SetRecord, ...]
    parity: ParityEvidence


class StepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the sets so far say of a plan."""

    plan: PlanSteps
    steps: tuple[Decision, ...]
    totals: tuple[Decision, ...]
    """Of the plan up to and with each step, against the original."""
    parities: tuple[ParityEvidence, ...]
    """Likewise."""
    records: tuple[SetRecord, ...]
    edge: float
    """A ratio has to be above it to count."""

    def held(self, at: int) -> bool:
        """Whether a step was shown to help and to learn the same, on top of those before it."""
        faster = self.steps[at].verdict is Verdict.FASTER and self.totals[at].verdict is Verdict.FASTER
        return faster and self.parities[at].passed

    def undecided(self, at: int) -> bool:
        """Whether more sets may still show that a step helps; not where its estimate is below the margin."""
        ratio = self.steps[at].ratio
        wanted = self.steps[at].more or self.totals[at].more
        return (
            not self.held(at)
            and self.parities[at].passed
            and wanted
            and ratio is not None
            and ratio.ratio > self.edge
        )

    def open(self) -> bool:
        """Whether any step is undecided."""
        return any(self.undecided(at) for at in range(len(self.plan)))

    def losers(self, *, last: bool) -> list[Refusal]:
        """Return the steps that do not hold and why; in the last look also those that are undecided.

        Nothing behind the first step with which the loss departs: that was never seen without it.
        """
        departs = next((at for at, parity in enumerate(self.parities) if not parity.passed), len(self.plan))
        found = [
            Refusal(self.plan[at].label, _why_not(self.steps[at], self.totals[at]))
            for at in range(departs)
            if not self.held(at) and (last or not self.undecided(at))
        ]
        if departs < len(self.plan):
            reason = f"parity when confirmed: {self.parities[departs].evidence}"
            found.append(Refusal(self.plan[departs].label, reason))
        return found


def _why_not(step: Decision, total: Decision) -> str:
    decision = step if step.verdict is not Verdict.FASTER else total
    return f"{_WORDS[decision.verdict]} when confirmed: {decision.reason}"


_WORDS = {
    Verdict.SAME: "no difference",
    Verdict.SLOWER: "slower",
    Verdict.INCONCLUSIVE: "not proven",
    Verdict.INVALID: "not comparable",
    Verdict.FASTER: "faster",
}


def standing(plan: PlanSteps, records: Sequence[SetRecord], ground: NoiseBaseline) -> StepStatus:
    """Return where a plan stands after sets whose first arms are the original and every prefix of it."""
    ends = range(1, len(plan) + 1)
    return StepStatus(
        plan=plan,
        steps=tuple(_decision(records, end - 1, end, ground) for end in ends),
        totals=tuple(_decision(records, 0, end, ground) for end in ends),
        parities=tuple(_parity(records, plan[:end], ground) for end in ends),
        records=tuple(records),
        edge=1 + margin(ground.floor),
    )


def _decision(records: Sequence[SetRecord], slow: int, fast: int, ground: NoiseBaseline) -> Decision:
    return decide(
        [record.log_ratios(slow, fast) for record in records],
        floor=ground.floor,
        min_pairs=MIN_SETS,
        max_pairs=MAX_SETS,
        prior_sd=ground.spread.sd,
        prior_df=ground.spread.df,
    )


def _parity(records: Sequence[SetRecord], plan: Sequence[Candidate], ground: NoiseBaseline) -> ParityEvidence:
    """The worst of all sets: combinations break what singles do not, and not every time."""
    checks = [ground.references.check(record.arms[len(plan)].losses, plan) for record in records]
    return max(checks, key=_departure)


def _departure(check: ParityEvidence) -> tuple[bool, float]:
    share = check.statistic / check.limit if check.statistic is not None and check.limit else 0.0
    return not check.passed, share


def confirmed(seen: StepStatus) -> tuple[Confirmation, ...]:
    """Return the longest beginning of the plan that holds, or nothing."""
    length = next((at for at in range(len(seen.plan)) if not seen.held(at)), len(seen.plan))
    if not length:
        return ()
    return (
        Confirmation(
            plan=seen.plan[:length],
            total=seen.totals[length - 1],
            steps=seen.steps[:length],
            records=seen.records,
            parity=seen.parities[length - 1],
        ),
    )
