"""How long a block is, and how many steps warm an arm up."""

from __future__ import annotations

import math

import msgspec

from hotloop.model.observation import Observation
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.parity import MIN_STEPS

BLOCK_S = 0.4
"""The neighbours' load changes within seconds: what is compared has to alternate faster than that."""
MAX_EPOCH_S = 4.0
"""Epochs up to this long are timed whole, with worker start-up and evaluation; longer ones hide them less."""
WARM_STEPS = 6
"""Two steps in which root modules are found, one in which code is compiled, and a few after that."""
WARM_S = 1.0
LONG_STEP_S = 0.5
"""What thawing leaves behind (cold caches, a queue that filled for some milliseconds) is nothing in such a step."""


class Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of trials for one program."""

    num_steps: int
    """Timed in a block."""
    discard: int
    """First steps of a block that are not timed."""
    warm_steps: int
    """First steps of an arm."""
    max_rounds: int | None
    """Rounds until the program ends by itself; None: it does not."""

    def per_block(self) -> int:
        """Return the steps that a block takes from the program."""
        return self.num_steps + self.discard


def shape_blocks(
    observation: Observation, epoch_steps: int | None, total_steps: int | None, block_s: float = BLOCK_S
) -> Blocks:
    """Return blocks that suit the program's step.

    Args:
        observation: with a measured step.
        epoch_steps: steps between two starts of the training loader; None: not seen, or there is none.
        total_steps: after which the program ends by itself; None: not known.
        block_s: how long a block is aimed to be.
    """
    assert observation.step is not None
    step_s = observation.step.median_s
    num = max(1, math.ceil(block_s / step_s))
    discard = min(max(1, num // 6), 20) if step_s < LONG_STEP_S else 0
    if epoch_steps and epoch_steps * step_s <= MAX_EPOCH_S:
        num = epoch_steps * max(1, round(num / epoch_steps))
    # The shortest trial has to leave a curve of losses that can be compared.
    curve = MIN_STEPS - MIN_BLOCKS * (num + discard)
    warm = max(WARM_STEPS, curve, min(200, math.ceil(WARM_S / step_s)))
    if total_steps is None:
        return Blocks(num_steps=num, discard=discard, warm_steps=warm, max_rounds=None)
    warm = min(warm, max(3, total_steps // 5))
    usable = total_steps - warm - 1
    while num > 1 and usable < 4 * (num + discard):
        num = max(1, num // 2)
        discard = min(discard, max(1, num // 2))
    return Blocks(
        num_steps=num, discard=discard, warm_steps=warm, max_rounds=max(0, usable // (num + discard))
    )
