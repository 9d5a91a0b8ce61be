"""Whether a change leaves as they were: batches, randomness, precision, gradients, updates of the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from hotloop.model.learned import TrainingInvariants
from hotloop.tune.verdict.first_gradients import other_gradients

MIN_BEGUN = 4
"""Backward calls after a step: of fewer no share is taken."""
MIN_FORWARDS = 16
"""A training of fewer forwards says little of what repeats and what does not."""
FEWER = 0.75
"""Distinct batches, random forwards or moving buffers of a change, relative to the original's; the loss of one of a
GAN's two models' dropout halves the random forwards."""
COARSER = 0.5
"""By how much more of the weights half precision may hold exactly; measured between 0 and 0.01 without rounding."""
VANISHED = 0.05
"""By how much more of the gradients may be 0. fp16 loses what is below 2^-24; bf16 has the exponents of float32."""
LEAST_SIZE, LEAST_TURN = 0.25, 0.15
"""Differences of the updates that always pass: a quarter in length (as a logarithm), and so much of a cosine."""
STILL, CARRIED = 0.1, 0.25
"""By how much more of the parameters may stand still, and of the backward calls begin on gradients of the step before.
In the programs of `benchmarks.parity` no harmless change altered either."""
MULTIPLE = 3.0
"""Times what they differ by in the program as it is, with other random choices."""


def broken(
    originals: Sequence[TrainingInvariants],
    seen: TrainingInvariants,
    perturbed: Sequence[TrainingInvariants] = (),
) -> str | None:
    """Return what a change does not leave as it was, in words, None: everything that was seen.

    Args:
        originals: of every run of the program as it is. A change is held to the one that it is closest to.
        seen: of a run with the change.
        perturbed: of the program with rounding noise and other random choices: how far updates differ by themselves.
    """
    floors = [*originals[1:], *perturbed]
    found = [
        next(
            chain(_counts(one, seen), _parts(one, seen), _shares(one, seen), _updates(one, seen, floors)),
            None,
        )
        for one in originals
    ]
    if found and all(found):
        return found[0]
    return other_gradients(originals, seen, perturbed)


def _counts(original: TrainingInvariants, seen: TrainingInvariants) -> Iterator[str]:
    if min(original.num_forwards, seen.num_forwards) >= MIN_FORWARDS:
        for before, after, what in (
            (original.distinct or 0.0, seen.distinct or 0.0, "a new batch was seen"),
            (
                original.num_random / original.num_forwards,
                seen.num_random / seen.num_forwards,
                "random numbers were drawn (dropout)",
            ),
        ):
            if after < FEWER * before:
                yield f"{what} in {after:.0%} of the first training forwards, in the original in {before:.0%}"
    if seen.num_moving < FEWER * original.num_moving:
        moving = f"{seen.num_moving} of {seen.num_buffers} buffers (running statistics) are updated"
        yield f"{moving}, {original.num_moving} in the original"


def _parts(original: TrainingInvariants, seen: TrainingInvariants) -> Iterator[str]:
    for before, after, most, what in (
        (_still(original), _still(seen), STILL, "parameters do not move"),
        (_carried(original), _carried(seen), CARRIED, "backward calls add to gradients of the step before"),
    ):
        if before is not None and after is not None and after > before + most:
            yield f"{after:.0%} of the {what}, {before:.0%} in the original"


def _still(one: TrainingInvariants) -> float | None:
    return one.num_still / one.num_parameters if one.num_parameters else None


def _carried(one: TrainingInvariants) -> float | None:
    return one.num_carried / one.num_begun if one.num_begun >= MIN_BEGUN else None


def _shares(original: TrainingInvariants, seen: TrainingInvariants) -> Iterator[str]:
    for before, after, margin, what in (
        (original.coarse_weights, seen.coarse_weights, COARSER, "weights have the precision of 16 bits"),
        (original.zero_gradients, seen.zero_gradients, VANISHED, "gradients are 0 or missing"),
    ):
        if before is not None and after is not None and after > before + margin:
            yield f"{after:.0%} of the {what}, {before:.0%} in the original"


def _updates(
    original: TrainingInvariants, seen: TrainingInvariants, floors: Sequence[TrainingInvariants]
) -> Iterator[str]:
    if _departs(_log_size, original, seen, floors, LEAST_SIZE):
        size, usual = (f"{one.update_size:.2g}" for one in (seen, original))
        yield f"a step moves the weights by {size} of their size, by {usual} in the original"
    if _departs(_turn, original, seen, floors, LEAST_TURN):
        turn, usual = (f"{one.update_turn:.2f}" for one in (seen, original))
        yield f"the cosine between one update of the weights and the next is {turn}, in the original {usual}"


def _departs(
    value: Callable[[TrainingInvariants], float | None],
    original: TrainingInvariants,
    seen: TrainingInvariants,
    floors: Sequence[TrainingInvariants],
    least: float,
) -> bool:
    before, after = value(original), value(seen)
    if before is None or after is None:
        return False
    apart = [one - before for floor in floors if (one := value(floor)) is not None]
    spread = math.sqrt(sum(each**2 for each in apart) / len(apart)) if apart else 0.0
    return abs(after - before) > max(least, MULTIPLE * spread)


def _log_size(one: TrainingInvariants) -> float | None:
    return math.log(one.update_size) if one.update_size else None


def _turn(one: TrainingInvariants) -> float | None:
    return one.update_turn
