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
from hotloop.tune.executor import ArmRecord, PlanSteps, Rounds
from hotloop.tune.search.status import Status
from hotloop.tune.verdict.baseline import NoiseBaseline
from hotloop.tune.verdict.reasons import ACCEPTED, NO_DIFFERENCE, PARITY, SLOWER, failure_reason, not_proven
from hotloop.tune.verdict.reference_losses import ReferenceLosses

PRUNE_AFTER = 4
"""Rounds after which an arm that is clearly slower is ended: two forwards, two backwards."""
CONFIDENCE = 0.9
"""Of screening: one null in twenty gets through, and rides along in a confirmation until that shows."""


def decide(
    candidate: Candidate, outcome: Measured | Failure, ground: NoiseBaseline
) -> tuple[Status, str, Ratio | None]:
    """Return whether a candidate is out after an arm of its own, why, and its speed where that was measured."""
    if isinstance(outcome, Failure):
        status = Status.LATE if outcome.kind is FailureKind.LATE else Status.FAILED
        return status, failure_reason(outcome), None
    pairs = [pair for pair in outcome.pairs if len(pair) >= MIN_BLOCKS]
    ratio = screening_ratio(pairs, ground, 0.95)
    parity = outcome.parity
    idle = not_proven(outcome.effects, candidate)
    if idle is not None:
        return Status.NO_EFFECT, idle, ratio
    if (
        parity is not None and parity.decided and not parity.passed
    ):  # whatever its speed: that is worth knowing
        return Status.PARITY, f"{PARITY}: {parity.evidence}", ratio
    return Status.OPEN, _speed(outcome.pairs[-1], pairs, ground), ratio


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


def _speed(ratios: Sequence[float], pairs: Sequence[Sequence[float]], ground: NoiseBaseline) -> str:
    """Whether it is worth a confirmation, and why not."""
    ratio, inner = (screening_ratio(pairs, ground, level) for level in (0.95, CONFIDENCE))
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
