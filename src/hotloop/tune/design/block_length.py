"""How long a block is, and how many steps warm an arm up."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from hotloop.model.observation import Observation, Phase
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.parity import MIN_STEPS
from hotloop.tune.design.elapsed import elapsed_step_s, holds_more, interrupted_rarely, period_steps
from hotloop.tune.design.switchable import has_workers

TURN_S, TURNS = 0.1, 6
"""Neighbours come and go within seconds, so arms take turns faster than that, and a block is the median of its turns.
In 8 s of two equal arms, turns of 0.1 s scatter 2 to 10 times less than turns of 0.8 s beside others, and about half
on a quiet machine (benchmarks/results/noise-2026-11-22.md)."""
MAX_EPOCH_S = 4.0
"""Epochs that take up to so long on the clock are timed whole, with worker start-up and evaluation; longer ones hide
them less."""
MAX_BOUND_EPOCH_S, BOUND = 8.0, 0.1
"""Likewise where the starts of epochs take a tenth of their steps' time and more: what acts there shows only so."""
EPOCHS_IN_BUDGET = 150
"""A proof is at least 24 blocks and six starts: of epochs that are more than this part of the budget it takes so much
that nothing can be tried first (124 steps of 27 ms in 200 s: three sets of an unmeasured guess took all of it)."""
WARM_STEPS = 6
"""Two steps in which root modules are found, one in which code is compiled, and a few after that."""
WARM_S = 1.0
MAX_SETTLING_S, SETTLING_IN_BUDGET = 6.0, 100
"""What comes before the first evaluation is warm-up, if it is no more than so long, and this part of the budget: malloc
keeps more after it. A super-resolution net's step took 92 ms before and 76 after, and an allocator's 1.13x was nothing
by then."""
WARM_PART = 5
"""A program that ends by itself warms up for no more than so much of its steps: a fifth."""
LONG_STEP_S = 0.15
"""What thawing leaves behind (cold caches, a queue that filled for some milliseconds) is little in such a step."""
WAITING_SHARE = 0.1
"""Of the step, for data: from here on a worker that is late makes single steps long, and those count."""


class Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of trials for one program."""

    num_steps: int
    """Timed in a turn."""
    discard: int
    """First steps of a turn that are not timed."""
    warm_steps: int
    """First steps of an arm."""
    max_rounds: int | None
    """Rounds until the program ends by itself; None: it does not."""

    turns: int = 1
    """Of a block; all arms take one after the other."""
    typical: bool = False
    """Whether a block is its median turn, because long steps are the machine's doing; otherwise it is their mean."""

    turn_s: float = TURN_S
    """What a turn takes of the original program, as it was observed, with what is not timed."""

    trains: bool = False
    """Whether turns with an evaluation or a new epoch in them are left out: they are rare, and no steps."""

    def per_turn(self) -> int:
        """Return the steps that a turn takes from the program."""
        return self.num_steps + self.discard

    def per_block(self) -> int:
        """Return the steps that a block takes from the program."""
        return self.turns * self.per_turn()

    def curve_rounds(self) -> int:
        """Return the rounds after which an arm's losses can be compared."""
        return max(0, math.ceil((MIN_STEPS - self.warm_steps) / self.per_block()))

    def with_curve(self) -> Blocks:
        """Return blocks of which the fewest leave losses that can be compared, with a longer warm-up if need be."""
        warm = max(self.warm_steps, MIN_STEPS - MIN_BLOCKS * self.per_block())
        return msgspec.structs.replace(self, warm_steps=warm)


def shape_blocks(
    observation: Observation,
    epoch_steps: int | None,
    total_steps: int | None,
    block_s: float = TURN_S,
    turns: int = TURNS,
    budget_s: float = math.inf,
) -> Blocks:
    """Return blocks that suit the program's step.

    Args:
        observation: with a measured step.
        epoch_steps: steps between two starts of the training loader; None: not seen, or there is none.
        total_steps: after which the program ends by itself; None: not known.
        block_s: how long a turn is aimed to be.
        turns: of a block, at most.
        budget_s: of the session; inf: blocks may take as long as suits the program.
    """
    assert observation.step is not None
    step_s, elapsed_s, period = observation.step.median_s, elapsed_step_s(observation), 1
    longest_s = min(MAX_EPOCH_S, budget_s / EPOCHS_IN_BUDGET)
    if epoch_steps and _is_timed_whole(observation, epoch_steps, longest_s):
        step_s, period = elapsed_s, epoch_steps
    elif holds_more(observation, math.ceil(block_s / step_s)):
        step_s, period = elapsed_s, period_steps(observation)
        period = period if period * elapsed_s <= longest_s else 1
    num = period * max(1, math.ceil(block_s / step_s) // period)
    discard = min(max(1, num // 6), 20) if step_s < LONG_STEP_S else 0
    turns = min(turns, max(1, round(turns * block_s / (num * step_s))))
    settling = _settling_steps(observation, total_steps, min(MAX_SETTLING_S, budget_s / SETTLING_IN_BUDGET))
    warm = max(WARM_STEPS, min(200, math.ceil(WARM_S / step_s)), settling)
    typical = turns > 1 and _regular(observation)
    shape = Blocks(
        num_steps=num,
        discard=discard,
        warm_steps=warm,
        max_rounds=None,
        turns=turns,
        typical=typical,
        turn_s=(num + discard) * step_s,
        trains=interrupted_rarely(observation, num + discard),
    )
    return shape if total_steps is None else _fitted(shape, total_steps)


def _settling_steps(observation: Observation, total_steps: int | None, longest_s: float) -> int:
    """Return the steps after which the first evaluation is over; 0: none was seen, or it comes too late."""
    series = next((one for one in observation.series if one.evaluations and one.duration_s), None)
    if series is None:
        return 0
    at = min(series.evaluations)
    num = at + 2  # the first step of a program is not in the series
    short = total_steps is not None and num > total_steps // WARM_PART
    seconds = float(np.frombuffer(series.duration_s, "<f4")[: at + 1].sum())
    return 0 if short or seconds > longest_s else num


def _is_timed_whole(observation: Observation, epoch_steps: int, longest_s: float) -> bool:
    """Whether a block is an epoch; the starts of workers are looked at in twice as long ones."""
    assert observation.step is not None
    steps_s, elapsed_s = (
        epoch_steps * each for each in (observation.step.median_s, elapsed_step_s(observation))
    )
    if elapsed_s <= longest_s:
        return True
    run = observation.run
    start_s = run.parts.get("epoch_boundary_s", 0.0) / max(1, run.num_epochs or 1)
    bound_s = longest_s * MAX_BOUND_EPOCH_S / MAX_EPOCH_S
    return steps_s <= longest_s and start_s >= BOUND * steps_s and elapsed_s <= bound_s


def _regular(observation: Observation) -> bool:
    """Whether long steps are the machine's doing: no loader worker that is late makes single steps wait."""
    data = observation.phases.get(Phase.DATA)
    return data is None or data.share < WAITING_SHARE or not has_workers(observation, ())


def _fitted(shape: Blocks, total_steps: int) -> Blocks:
    """As many rounds as a short program has, of smaller blocks if there would be fewer than four."""
    warm = min(shape.warm_steps, max(3, total_steps // WARM_PART))
    usable = total_steps - warm - 1
    num, discard, turns = shape.num_steps, shape.discard, shape.turns
    while turns > 1 and usable < 8 * turns * (num + discard):
        turns -= 1
    while num > 1 and usable < 4 * turns * (num + discard):
        num = max(1, num // 2)
        discard = min(discard, max(1, num // 2))
    return msgspec.structs.replace(
        shape,
        num_steps=num,
        discard=discard,
        warm_steps=warm,
        max_rounds=max(0, usable // (turns * (num + discard))),
        turns=turns,
    )
