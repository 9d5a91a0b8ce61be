"""What sets of fresh processes say of two plans: one pair of processes a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.verdict import Decision, decide
from hotloop.tune.confirm.contention_filter import Beside
from hotloop.tune.verdict.baseline import NoiseBaseline

MIN_SETS, MAX_SETS = 3, 8
"""Of a proof."""


class SetPair(NamedTuple):
    """What a set says of two plans."""

    blocks: tuple[float, ...]
    """Log ratios."""
    disturbed: bool
    beside: Beside | None
    """Why it does not tell what is gained when the user runs it; None: it does."""


def counted_pairs(pairs: Sequence[SetPair]) -> list[SetPair]:
    """Return the pairs that say enough: those of the program as its user runs it, if there is one."""
    enough = [pair for pair in pairs if len(pair.blocks) >= MIN_BLOCKS]
    return [pair for pair in enough if pair.beside is None] or enough


def decision(pairs: Sequence[SetPair], ground: NoiseBaseline) -> Decision:
    """Return what the pairs allow to say, with an interval that is valid at every look."""
    return decide(
        [pair.blocks for pair in pairs],
        disturbed=[number for number, pair in enumerate(pairs) if pair.disturbed],
        floor=ground.floor,
        min_pairs=MIN_SETS,
        max_pairs=MAX_SETS,
        prior_sd=ground.spread.sd,
        prior_df=ground.spread.df,
    )
