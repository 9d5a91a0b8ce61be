"""Screening: is a candidate worth fresh pairs? One pair answers, block by block."""

import math
from collections.abc import Sequence
from enum import Enum

from hotloop.stats.pairs import DEFAULT_PRIOR_DF, DEFAULT_PRIOR_SD, ratio_interval
from hotloop.stats.verdict import MIN_MARGIN

MIN_BLOCKS = 4
"""One ABBA round and its mirror."""
MAX_BLOCKS = 12
"""About the length of a full pair: more blocks cannot tell processes from programs."""
_HOPELESS = math.log(1 / 1.25)
"""Programs vary 5-15% from run to run: a quarter slower in every block is not chance."""


class Screen(str, Enum):
    """What to do with a candidate."""

    KEEP = "keep"
    """Worth fresh pairs."""
    DROP = "drop"
    MORE = "more"
    """Another block."""


def promising(
    block_log_ratios: Sequence[float],
    *,
    margin: float = MIN_MARGIN,
    confidence: float = 0.8,
    min_blocks: int = MIN_BLOCKS,
    max_blocks: int = MAX_BLOCKS,
    prior_sd: float = DEFAULT_PRIOR_SD,
    prior_df: float = DEFAULT_PRIOR_DF,
) -> Screen:
    """Whether a candidate may be faster by more than the margin, as far as one pair can say.

    Dropped early: a quarter slower in each of two blocks; later: an interval (which holds the spread
    between pairs) that ends below the margin. Kept early: an interval wholly above 1. Undecided after
    `max_blocks`: kept where the estimate itself is above the margin.

    Args:
        block_log_ratios: log(time_incumbent / time_candidate) so far; not finite ones are skipped.
        margin: relative gain that a candidate must promise.
        confidence: of the screening interval; 0.8 loses one in ten that would be exactly at the margin.
        min_blocks: no interval before.
        max_blocks: the answer is keep or drop from here on.
        prior_sd: spread of identical processes, see `pairs.ratio_interval`.
        prior_df: what that spread is worth.
    """
    blocks = [value for value in block_log_ratios if math.isfinite(value)]
    if len(blocks) >= 2 and max(blocks) < _HOPELESS:
        return Screen.DROP
    if len(blocks) < min_blocks:
        return Screen.MORE
    seen = ratio_interval([blocks], confidence=confidence, prior_sd=prior_sd, prior_df=prior_df)
    if seen.high < 1 + margin:
        return Screen.DROP
    if seen.low > 1:
        return Screen.KEEP
    if len(blocks) < max_blocks:
        return Screen.MORE
    return Screen.KEEP if seen.ratio > 1 + margin else Screen.DROP
