"""The losses of the first steps, before training has amplified rounding: a change of the mathematics shows at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hotloop.stats.deviations import Reference
from hotloop.stats.parity_check import MULTIPLE, Check

Array = npt.NDArray[np.float64]
EARLY_STEPS = 5
"""Before training has amplified rounding: parameters have moved by a few updates only."""
REORDERED = 10.0
"""The perturbation rounds once, a reordered program rounds at every operation of every step."""
MINIMUM = 1e-3
"""Sums in another order moved the losses of the first five steps of a GAN with Adam by 5e-4 (Adam divides gradients
that are rounding alone by their own size) and others by 1e-6; bf16 moves them by 4e-3 and more."""
GROWTH = 300.0
"""From one step to the next, where perturbed runs part as far: in a DCGAN rounding grew from 1e-6 to 8e-3 within three
steps, by 20 to 140 times in each, in eight runs of a ResNet by up to 160 times in one. What a change does to the
mathematics is there at once, or comes from nothing."""


def check_first_steps(
    ours: Array, repeats: Sequence[Array], draws: Sequence[Array], theirs: Array, others: Array
) -> Check:
    """Return whether the first steps agree to rounding: reordered sums, and what training makes of them step by step.

    Args:
        ours: losses of the original.
        repeats: of the original again.
        draws: of the original with rounding noise and other random choices.
        theirs: of the candidate.
        others: how far the candidate had departed in other curves of the same training by each step.
    """
    reference = Reference(ours)
    scale = np.maximum(np.abs(ours[:EARLY_STEPS]), reference.scale[0])

    def departures(run: Array) -> Array:
        return np.asarray(np.abs(run - ours)[:EARLY_STEPS] / scale)

    seen = departures(theirs)
    floor = max((float(departures(run).max()) for run in repeats), default=0.0)
    # A run that has parted may cross the original's course again: by then it is as far away as it ever was.
    apart = [np.maximum.accumulate(departures(run)) ** 2 for run in draws]
    parted = np.sqrt(np.mean(apart, axis=0)) if draws else 0.0 * seen
    before = np.maximum(np.maximum.accumulate(np.concatenate(([0.0], seen[:-1]))), others[: len(seen)])
    limits = np.maximum(max(MINIMUM, REORDERED * floor), np.minimum(GROWTH * before, MULTIPLE * parted))
    closest = int(np.argmax(seen / limits))
    return Check("first steps", float(seen[closest]), float(limits[closest]), float(limits[closest]))
