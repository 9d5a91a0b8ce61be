"""The speed ratio of a candidate, with an interval that holds both kinds of noise.

A pair of processes is one sample. Blocks within a pair are autocorrelated and now and then hit by
something foreign; whole pairs differ because processes do (memory layout, page placement). So: a robust
location per pair, then Student's t over pairs, its variance steadied by what A/A pairs have shown.
"""

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec
import numpy as np

from hotloop.model.ratio import Ratio
from hotloop.stats.autocorrelation import ar1_inflation
from hotloop.stats.log_ratio import ratio_of
from hotloop.stats.robust import hodges_lehmann, winsorized
from hotloop.stats.student import student_quantile

DEFAULT_PRIOR_SD = 0.02
"""Identical processes were seen to differ by up to 3.5% for as long as they lived; 2% makes that 1.75 sd."""
DEFAULT_PRIOR_DF = 3.0
"""What four pairs would say: steadies three pairs (5 instead of 2 degrees of freedom), outvoted by eight."""
MIN_BLOCKS = 3
"""Fewer block ratios have no spread worth the name."""
_MAJORITY = 6
"""Of fewer blocks it cannot be said which ones are the wild ones: none is brought in."""
_Round = TypeVar("_Round")


class PairEstimate(msgspec.Struct, frozen=True):
    """What one pair of processes says."""

    log_ratio: float
    variance: float
    """Of `log_ratio`, from the blocks alone: what would change if the same two processes went on."""


def telling(rounds: Sequence[_Round], aside: Collection[int]) -> Sequence[_Round]:
    """Return the rounds without those that say little of the step, while enough say more: three beat twenty with noise.

    A machine that is never quiet gives wider intervals, not none.

    Args:
        rounds: in order.
        aside: numbers of those in which others were busy, or each turn was interrupted.
    """
    kept = [times for number, times in enumerate(rounds) if number not in aside]
    return kept if len(kept) >= MIN_BLOCKS else rounds


def pair_estimate(block_log_ratios: Sequence[float]) -> PairEstimate:
    """Robust location of one pair's block log ratios and its variance, autocorrelation respected.

    Raises:
        ValueError: fewer than three blocks, or one that is not finite.
    """
    return _estimate(tuple(block_log_ratios))


@lru_cache(maxsize=1024)
def _estimate(block_log_ratios: tuple[float, ...]) -> PairEstimate:
    """Estimate once: a session asks for all of its pairs at every look."""
    blocks = np.asarray(block_log_ratios, dtype=np.float64)
    if len(blocks) < MIN_BLOCKS or not np.isfinite(blocks).all():
        raise ValueError(f"a pair needs {MIN_BLOCKS} finite block ratios, not {list(block_log_ratios)}")
    tame = winsorized(blocks) if len(blocks) >= _MAJORITY else blocks
    variance = float(np.var(tame, ddof=1)) * ar1_inflation(tame) / len(blocks)
    return PairEstimate(hodges_lehmann(blocks), variance)


def ratio_interval(
    pairs: Sequence[Sequence[float]],
    *,
    confidence: float = 0.95,
    prior_sd: float = DEFAULT_PRIOR_SD,
    prior_df: float = DEFAULT_PRIOR_DF,
    disturbed: Collection[int] = (),
) -> Ratio:
    """Speed ratio (above 1: the candidate is faster) with its interval, from log ratios per pair.

    Args:
        pairs: block log ratios log(time_incumbent / time_candidate) of each pair.
        confidence: of this one look; looking repeatedly is `verdict.decide`'s business.
        prior_sd: expected difference of identical processes, as a standard deviation of the log ratio.
        prior_df: how many degrees of freedom that expectation is worth. With one pair it is all there is.
        disturbed: numbers of the pairs that others were seen to be busy beside: they count by what their blocks say.

    The variance of a pair is pooled from the prior and the pairs seen, as in a moderated t (Smyth 2004,
    Stat. Appl. Genet. Mol. Biol. 3:3), and never below what the blocks alone say.

    Raises:
        ValueError: no pairs, or a pair of too few or not finite blocks.
    """
    if not pairs:
        raise ValueError("a ratio needs at least one pair")
    estimates = [pair_estimate(blocks) for blocks in pairs]
    weights = _weights(estimates, prior_sd, disturbed)
    num = math.fsum(weights)
    center = math.fsum(w * one.log_ratio for w, one in zip(weights, estimates, strict=True)) / num
    variance, df = _pair_variance(estimates, weights, center, prior_sd, prior_df)
    half = student_quantile((1 + confidence) / 2, df) * math.sqrt(variance / num)
    return ratio_of(center, half)


def _weights(estimates: Sequence[PairEstimate], prior_sd: float, disturbed: Collection[int]) -> list[float]:
    """What each pair counts for: 1, or less where it was disturbed and its blocks scatter more than half of the others.

    Scatter alone is no reason: a candidate that is slow now and then would be called fast.
    """
    usual = sorted(one.variance for one in estimates)[(len(estimates) - 1) // 2]
    return [
        (prior_sd**2 + usual) / (prior_sd**2 + one.variance)
        if number in disturbed and one.variance > usual
        else 1.0
        for number, one in enumerate(estimates)
    ]


def _pair_variance(
    estimates: Sequence[PairEstimate],
    weights: Sequence[float],
    center: float,
    prior_sd: float,
    prior_df: float,
) -> tuple[float, float]:
    """Variance of a pair that counts in full, between and within together, and its degrees of freedom."""
    num = math.fsum(weights)
    both = list(zip(weights, estimates, strict=True))
    within = math.fsum(w * w * one.variance for w, one in both) / num
    squares = math.fsum(w * (one.log_ratio - center) ** 2 for w, one in both)
    df = prior_df + num - 1
    return max(within, (prior_df * (prior_sd**2 + within) + squares) / df), df
