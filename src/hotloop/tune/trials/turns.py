"""From the turns of a block to its seconds a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

import msgspec

OVERRUN, LEAST_TURNS = 2.0, 2
"""A block that takes so many times as long as on a quiet machine keeps the turns it has, from so many on: neighbours
make steps of 4 ms into steps of 30 ms, and a set of eight arms took 140 s for three rounds."""


class Turn(msgspec.Struct, frozen=True):
    """What an arm did in a turn."""

    step_s: float
    """NaN: it failed."""
    interrupted: bool = False
    """Whether the model was called without gradients in it, or an epoch began."""


def block_times(turns: Mapping[int, Sequence[Turn]], *, typical: bool, trains: bool) -> dict[int, float]:
    """Return the seconds a step of each arm in a block.

    An evaluation of half a second between steps of 30 ms makes a turn ten times as long, and so does the start of
    workers; there is one in some blocks and none in others: that is no step, and says nothing of the step.

    Args:
        turns: of each arm, in order.
        typical: whether a block is its median turn, or the mean of its turns.
        trains: leave out turns in which any arm was interrupted, as long as others are left.
    """
    num = min(map(len, turns.values()), default=0)
    kept = undisturbed(turns) if trains else ()
    middle = median if typical else fmean
    return {arm: middle([each[at].step_s for at in kept or range(num)]) for arm, each in turns.items()}


def is_late(num_turns: int, spent_s: float, usual_s: float) -> bool:
    """Whether a block ends with fewer turns than it has on a quiet machine.

    Args:
        num_turns: that every arm has had.
        spent_s: on them.
        usual_s: what all turns of the block take.
    """
    # As many forwards as backwards: drift hits all alike.
    return num_turns >= LEAST_TURNS and num_turns % 2 == 0 and spent_s > OVERRUN * usual_s


def undisturbed(turns: Mapping[int, Sequence[Turn]]) -> list[int]:
    """Return the turns in which no arm was interrupted."""
    num = min(map(len, turns.values()), default=0)
    return [at for at in range(num) if not any(each[at].interrupted for each in turns.values())]
