"""What a trial's record says of its candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from hotloop.model.optimization import Candidate
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Failure, FailureKind, Measured
from hotloop.stats.floor import Spread
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval
from hotloop.stats.screen import Screen, promising
from hotloop.stats.verdict import margin
from hotloop.tune.executor import SetRecord
from hotloop.tune.verdict.chained_sets import total_contention
from hotloop.tune.verdict.reference_losses import ReferenceLosses

ACCEPTED = "accepted"
NO_DIFFERENCE = "no difference"
DOUBTFUL = "promising as far as one pair can tell"
ONE_OFF_NOISE_S = 0.5
"""Starts of the same program differ by about this much on a quiet machine."""


def measured(
    record: SetRecord, candidate: Candidate, plan: Sequence[Candidate], references: ReferenceLosses
) -> Measured:
    """Return a two-arm record as what was measured of its candidate, the second arm's."""
    before, after = record.arms
    return Measured(
        pairs=(record.log_ratios(0, 1),),
        step_s=(before.step_s, after.step_s),
        effects=tuple(effect for effect in after.effects if effect.name == candidate.name),
        parity=references.check(after.losses, plan),
        one_off_s=one_off_s(before.first_steps_s, after.first_steps_s),
        peak_bytes=(before.peak_bytes, after.peak_bytes),
        contention=record.contention,
    )


def joined(first: Measured, second: Measured | Failure) -> Measured | Failure:
    """Return two pairs of one candidate as one; what its first steps cost is seen in fresh pairs only."""
    if isinstance(second, Failure):
        return second
    failed = [pair.parity for pair in (first, second) if pair.parity is not None and not pair.parity.passed]
    return msgspec.structs.replace(
        second,
        pairs=first.pairs + second.pairs,
        parity=failed[0] if failed else second.parity,
        contention=total_contention([first.contention, second.contention]),
    )


def one_off_s(before_s: float | None, after_s: float | None) -> float | None:
    """Return what start-up and first steps cost more; None where it was not measured or is noise."""
    if before_s is None or after_s is None or after_s - before_s < ONE_OFF_NOISE_S:
        return None
    return after_s - before_s


def ratio_of(outcome: Measured, spread: Spread) -> Ratio | None:
    """Return the speed ratio of a screening pair with its interval; None with too few blocks."""
    if any(len(pair) < MIN_BLOCKS for pair in outcome.pairs):
        return None
    return ratio_interval(outcome.pairs, prior_sd=spread.sd, prior_df=spread.df)


def decide_trial(outcome: Measured | Failure, candidate: Candidate, floor: float, spread: Spread) -> str:
    """Return `ACCEPTED`, `DOUBTFUL` where a fresh pair is wanted, or the reason why it is refused."""
    if isinstance(outcome, Failure):
        return _failure_reason(outcome)
    reason = not_proven(outcome, candidate)
    if reason is not None:
        return reason
    if _doubtful(outcome, floor, spread):
        return DOUBTFUL
    if not _promising(outcome, floor, spread):
        return f"{_word(outcome)}: {_shown(outcome, spread)}"
    if outcome.parity is not None and not outcome.parity.passed:
        return f"parity: {outcome.parity.evidence}"
    return ACCEPTED


def _doubtful(outcome: Measured, floor: float, spread: Spread) -> bool:
    """Whether one pair shows a gain that may be the two processes' own."""
    blocks = outcome.pairs[0]
    if len(outcome.pairs) > 1 or len(blocks) < MIN_BLOCKS:
        return False
    return not _surely_faster(outcome, spread) and _last_word(blocks, floor, spread) is Screen.KEEP


def _promising(outcome: Measured, floor: float, spread: Spread) -> bool:
    blocks = outcome.pairs[0]
    if len(outcome.pairs) > 1:
        return _surely_faster(outcome, spread)
    return _last_word(blocks, floor, spread) is Screen.KEEP


def _surely_faster(outcome: Measured, spread: Spread) -> bool:
    """By the interval that screening stops at: see `promising`."""
    seen = ratio_interval(outcome.pairs, confidence=0.8, prior_sd=spread.sd, prior_df=spread.df)
    return seen.low > 1


def _last_word(blocks: Sequence[float], floor: float, spread: Spread) -> Screen:
    """Whatever number of blocks a pair has is all there is."""
    return promising(
        blocks,
        margin=margin(floor),
        min_blocks=MIN_BLOCKS,
        max_blocks=len(blocks),
        prior_sd=spread.sd,
        prior_df=spread.df,
    )


def _word(outcome: Measured) -> str:
    blocks = [value for pair in outcome.pairs for value in pair]
    return "slower" if median(blocks) < 0 and max(blocks) < 0 else NO_DIFFERENCE


def _shown(outcome: Measured, spread: Spread) -> str:
    blocks = outcome.pairs[0]
    ratio = ratio_of(outcome, spread)
    if ratio is None:
        return f"{math.exp(median(blocks)):.2f} in {len(blocks)} blocks"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def not_proven(outcome: Measured, candidate: Candidate) -> str | None:
    """Return why the candidate cannot be said to have been on, or None where it was."""
    seen = [effect for effect in outcome.effects if effect.name == candidate.name]
    if not seen:
        return "no effect: it was not seen to act in the training process"
    if not seen[0].on:
        return f"no effect: {seen[0].evidence}"
    return None


def _failure_reason(failure: Failure) -> str:
    last = failure.log_end.strip().splitlines()[-1:] or [""]
    tail = f": {last[0].strip()}" if last[0].strip() and failure.kind is not FailureKind.ENDED else ""
    return f"failed ({failure.kind.value}): {failure.message}{tail}"
