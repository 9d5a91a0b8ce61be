"""Simulated loss curves: what rounding does to a training run, and what a broken candidate does."""

import math
from collections.abc import Callable

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Training(msgspec.Struct, frozen=True):
    """One training program on fixed batches; `run` may be called once per run of it."""

    clean: Array
    """Loss without batch noise."""
    batches: Array
    """The noise that the batches themselves bring: the same in every run."""
    chaos: float
    """Size that rounding differences grow to, relative to the loss."""

    @property
    def losses(self) -> Array:
        """The reference run."""
        return self.clean + self.batches

    def run(self, rng: np.random.Generator, rounding: float, per_step: float = 0.0) -> Array:
        """The same training with other rounding.

        Differences grow by a tenth a step from `rounding` until they saturate, and wander (AR(1), 0.9) by
        then; `per_step` is independent rounding of each loss itself.
        """
        num = len(self.clean)
        wander = np.zeros(num)
        for index in range(1, num):
            wander[index] = 0.9 * wander[index - 1] + math.sqrt(1 - 0.81) * rng.normal()
        size = np.minimum(self.chaos, rounding * 1.1 ** np.minimum(np.arange(num), 400.0))
        level = np.maximum(np.abs(self.clean), float(np.std(self.batches)))
        found: Array = self.losses + level * (size * wander + per_step * rng.normal(size=num))
        return found


def random_training(rng: np.random.Generator, num: int) -> Training:
    """A loss that falls as a power law to 5-60% of its start, 1-10% batch noise, up to 1.5% of chaos."""
    start, rest = float(rng.uniform(1, 10)), float(rng.uniform(0.05, 0.6))
    pace = float(rng.uniform(0.05, 0.3)) * num
    clean = start * (rest + (1 - rest) * (1 + np.arange(num) / pace) ** -1.0)
    noise = float(rng.uniform(0.01, 0.1))
    return Training(clean, clean * noise * rng.normal(size=num), float(rng.uniform(0.0, 0.015)))


def frozen(training: Training) -> Array:
    """Does not learn."""
    found: Array = training.clean[0] + training.batches
    return found


def slower(training: Training, factor: float = 0.5) -> Array:
    """Learns at a fraction of the pace."""
    steps = np.arange(len(training.clean))
    found: Array = np.interp(steps * factor, steps, training.clean) + training.batches
    return found


def late_divergence(training: Training) -> Array:
    """The loss climbs in the last 15% of the run, to half again its level."""
    num = len(training.clean)
    climb = np.clip((np.arange(num) / num - 0.85) / 0.15, 0, 1)
    found: Array = training.losses * (1 + 0.5 * climb)
    return found


def offset(training: Training, relative: float = 0.05) -> Array:
    """Systematically worse by 5%."""
    return training.losses * (1 + relative)


def plateau(training: Training) -> Array:
    """Stops learning after a fifth of the run."""
    stop = len(training.clean) // 5
    clean = np.where(np.arange(len(training.clean)) < stop, training.clean, training.clean[stop])
    return clean + training.batches


BROKEN: dict[str, Callable[[Training], Array]] = {
    "does not learn": frozen,
    "learns at half the pace": slower,
    "diverges late": late_divergence,
    "5% worse": offset,
    "stops learning": plateau,
}
"""Candidates that must fail, by what is wrong with them."""
