"""What this machine makes of a program against itself: the floor below which no difference is claimed."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from hotloop.stats.pairs import DEFAULT_PRIOR_SD, pair_estimate, ratio_interval
from hotloop.stats.robust import winsorized

MIN_FLOOR = 0.005
"""The recorder itself may cost up to 0.5% of a step; nothing smaller is a property of the program."""
_BELIEF_DF = 2.0
"""What the default spread is worth beside A/A pairs: two of them outvote it."""
_MAX_PRIOR_DF = 8.0
"""A/A pairs are of the incumbent: a candidate's processes may spread differently, however many were run."""
_SHORTEST_VERDICT = 3
"""Pairs of the shortest admissible verdict."""


class Spread(msgspec.Struct, frozen=True):
    """How much identical processes differ: the prior of `ratio_interval`."""

    sd: float
    """Of the log ratio of a pair, beyond what its blocks explain."""
    df: float


def pair_spread(pairs: Sequence[Sequence[float]]) -> Spread:
    """Spread between A/A pairs, for `prior_sd` and `prior_df`; without pairs the default one.

    The truth of an A/A pair is known (no difference), so squares are taken around zero, less what the
    blocks explain, and pooled with the default spread.
    """
    estimates = [pair_estimate(blocks) for blocks in pairs]
    squares = math.fsum(max(0.0, e.log_ratio**2 - e.variance) for e in estimates)
    df = _BELIEF_DF + len(estimates)
    return Spread(math.sqrt((_BELIEF_DF * DEFAULT_PRIOR_SD**2 + squares) / df), min(_MAX_PRIOR_DF, df))


def aa_floor(pairs: Sequence[Sequence[float]]) -> float:
    """The floor, relative (0.012 is 1.2%): no smaller difference is claimed on this machine.

    The larger of the lower bound, the standard error that A/A pairs show for the shortest verdict (three
    pairs; squares around the known truth, wild pairs winsorized, pooled with the default spread), and the
    bias that the A/A interval proves (a harness that favours one side does not average out).
    """
    if not pairs:
        return max(MIN_FLOOR, math.expm1(DEFAULT_PRIOR_SD / math.sqrt(_SHORTEST_VERDICT)))
    locations = np.array([pair_estimate(blocks).log_ratio for blocks in pairs])
    mirrored = winsorized(np.concatenate((locations, -locations)))
    squares = float(mirrored @ mirrored) / 2
    variance = (_BELIEF_DF * DEFAULT_PRIOR_SD**2 + squares) / (_BELIEF_DF + len(locations))
    return max(MIN_FLOOR, math.expm1(math.sqrt(variance / _SHORTEST_VERDICT)), _proven_bias(pairs))


def _proven_bias(pairs: Sequence[Sequence[float]]) -> float:
    """Distance from 1 of the nearer end of the A/A interval; 0 where it holds 1."""
    seen = ratio_interval(pairs, prior_df=_BELIEF_DF)
    return max(0.0, seen.low - 1, 1 / seen.high - 1)
