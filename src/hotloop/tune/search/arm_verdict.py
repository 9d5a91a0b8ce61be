"""What a set of arms says of one: whether it is worth a confirmation, and why not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from hotloop.model.optimization import Candidate, Numerics
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Measured, ParityEvidence
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval
from hotloop.stats.verdict import TELLING, margin
from hotloop.tune.executor import ArmRecord, PlanSteps, Rounds, SetOrder, SetRecord
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.decision import ACCEPTED, NO_DIFFERENCE, PARITY, SLOWER, failure_reason, not_proven
from hotloop.tune.verdict.reference_losses import ReferenceLosses

PRUNE_AFTER = 4
"""Rounds after which an arm that is clearly slower is ended: two forwards, two backwards."""
CONFIDENCE = 0.9
"""Of screening: one null in twenty gets through, and rides along in a confirmation until that shows."""
LARGE, LARGE_CONFIDENCE = 1.06, 0.8
"""One pair of processes is rarely surer of a gain of a tenth than this. Where such a gain was expected, too, it is
worth three pairs more."""


def decide(
    candidate: Candidate, outcome: Measured | Failure, ground: NoiseBaseline
) -> tuple[str, Ratio | None]:
    """Return the decision on a candidate, with its speed where that was measured."""
    if isinstance(outcome, Failure):
        return failure_reason(outcome), None
    pairs = [pair for pair in outcome.pairs if len(pair) >= MIN_BLOCKS]
    ratio = screening_ratio(pairs, ground, 0.95)
    parity = outcome.parity
    idle = not_proven(outcome.effects, candidate)
    if idle is None and parity is not None and parity.decided and not parity.passed:
        return (
            f"{PARITY}: {parity.evidence}",
            ratio,
        )  # whatever its speed: that it learns otherwise is worth knowing
    return idle or _speed(candidate, outcome.pairs[-1], pairs, ground), ratio


def parity_beside(
    references: ReferenceLosses,
    candidate: Candidate,
    before: tuple[ArmRecord, PlanSteps],
    after: tuple[ArmRecord, PlanSteps],
) -> ParityEvidence:
    """Return whether it learns the same; a candidate does not answer for what it is beside.

    Args:
        references: of the original.
        candidate: that is tried.
        before: the arm without it, and what was on in it.
        after: the arm with it.
    """
    if candidate.touches_numbers or candidate.numerics is not Numerics.EXACT:
        whole, base = references.check(*after), before[1]
        added = base and all(step in after[1] for step in base)
        if whole.passed or not added or references.check(*before).passed:
            return whole
    return references.beside(before[0]).check(after[0], (candidate,))


def _speed(
    candidate: Candidate, ratios: Sequence[float], pairs: Sequence[Sequence[float]], ground: NoiseBaseline
) -> str:
    """Whether it is worth a confirmation, and why not."""
    ratio = screening_ratio(pairs, ground, 0.95)
    large = ratio is not None and min(ratio.ratio, candidate.expected) > LARGE
    inner = screening_ratio(pairs, ground, LARGE_CONFIDENCE if large else CONFIDENCE)
    if ratio is None or inner is None:
        if len(ratios) >= 2 and max(ratios) < math.log(1 / 1.25):
            return f"{SLOWER}: {math.exp(fmean(ratios)):.2f}x in {len(ratios)} blocks"
        return f"{NO_DIFFERENCE}: it gave {len(ratios)} blocks, too few to say more"
    if inner.low > 1 and ratio.ratio > 1 + margin(ground.floor):
        return ACCEPTED
    if ratio.high > TELLING * ratio.low:
        return f"{NO_DIFFERENCE} shown: times varied too much to tell, in {len(ratios)} blocks"
    word = SLOWER if ratio.high < 1 else NO_DIFFERENCE
    return f"{word}: {ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def screening_ratio(
    pairs: Sequence[Sequence[float]], ground: NoiseBaseline, confidence: float
) -> Ratio | None:
    """Return the speed ratio of some pairs; None with too few blocks."""
    if not pairs:
        return None
    return ratio_interval(pairs, confidence=confidence, prior_sd=ground.spread.sd, prior_df=ground.spread.df)


def proven_slower(ratios: Sequence[float], ground: NoiseBaseline, by: float = 1.0) -> bool:
    """Whether an arm is slower by a factor than what it is compared with, as sure as screening is."""
    ratio = screening_ratio([ratios] if len(ratios) >= MIN_BLOCKS else [], ground, CONFIDENCE)
    return ratio is not None and ratio.high < 1 / by


def clearly_worse(record: SetRecord, order: SetOrder, base: int, ground: NoiseBaseline) -> bool:
    """Whether a plan failed or is slower than the originals beside it; one that was not warm in time says nothing."""
    failure = record.failure(base)
    if failure is not None:
        return failure.kind is not FailureKind.LATE
    return proven_slower(record.log_ratios(record.originals(order), base), ground)


def clearly_slower(rounds: Rounds, originals: Sequence[int], at: int) -> bool:
    """Whether an arm is so much slower than the originals that more rounds of it are not worth their time.

    Args:
        rounds: seconds a step of every arm; NaN from where one failed. The first original never does.
        originals: the arms with nothing on.
        at: the arm.
    """
    logs = [
        # Of several originals one may have failed.
        math.log(times[at]) - fmean(math.log(times[one]) for one in originals if math.isfinite(times[one]))
        for times in rounds
        if math.isfinite(times[at])
    ]
    if len(logs) < PRUNE_AFTER:
        return len(logs) < len(rounds)
    return fmean(logs) - 2 * stdev(logs) / math.sqrt(len(logs)) > math.log(1.1)
