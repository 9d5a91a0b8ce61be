"""Whether a change leaves as they were: the batches, the randomness, the precision of weights and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hotloop.model.learned import TrainingInvariants

MIN_FORWARDS = 16
"""A training of fewer forwards says little of what repeats and what does not."""
FEWER = 0.75
"""Distinct batches, random forwards or moving buffers of a change, relative to the original's; the loss of one of a
GAN's two models' dropout halves the random forwards."""
COARSER = 0.5
"""By how much more of the weights half precision may hold exactly; measured between 0 and 0.01 without rounding."""
VANISHED = 0.05
"""By how much more of the gradients may be 0. fp16 loses what is below 2^-24; bf16 has the exponents of float32."""


def broken(originals: Sequence[TrainingInvariants], seen: TrainingInvariants) -> str | None:
    """Return what a change does not leave as it was, in words, None: everything that was seen.

    Args:
        originals: of every run of the program as it is. A change is held to the one that it is closest to.
        seen: of a run with the change.
    """
    found = [next(_differences(original, seen), None) for original in originals]
    return found[0] if found and all(found) else None


def _differences(original: TrainingInvariants, seen: TrainingInvariants) -> Iterator[str]:
    if min(original.num_forwards, seen.num_forwards) >= MIN_FORWARDS:
        for share, what in _COUNTED:
            ours, theirs = share(original), share(seen)
            if theirs < FEWER * ours:
                yield f"{what} in {theirs:.0%} of the first training forwards, in the original in {ours:.0%}"
    if seen.num_moving < FEWER * original.num_moving:
        moving = f"{seen.num_moving} of {seen.num_buffers} buffers (running statistics) are updated"
        yield f"{moving}, {original.num_moving} in the original"
    for before, after, margin, what in (
        (original.coarse_weights, seen.coarse_weights, COARSER, "weights have the precision of 16 bits"),
        (original.zero_gradients, seen.zero_gradients, VANISHED, "gradients are 0 or missing"),
    ):
        if before is not None and after is not None and after > before + margin:
            yield f"{after:.0%} of the {what}, {before:.0%} in the original"


_COUNTED: tuple[tuple[Callable[[TrainingInvariants], float], str], ...] = (
    (lambda one: one.num_distinct / one.num_forwards, "a new batch was seen"),
    (lambda one: one.num_random / one.num_forwards, "random numbers were drawn (dropout)"),
)
