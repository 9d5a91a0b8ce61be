"""Where the warm-up ends: MSER-5 (White 1997, Simulation 69:323; White, Cobb & Spratt 2000)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hotloop.stats.robust import mad_sd

Array = npt.NDArray[np.float64]

_BATCH = 5
"""MSER-5's batches."""
_MIN_BATCHES = 4
"""Fewer batches: single samples are judged (MSER-1)."""
_EVENT_SDS = 5.0
"""Beyond five robust sd of the later half a sample is an event: it counts as that, no more."""


def steady_from(samples: Sequence[float]) -> int:
    """First index of the steady state: the warm-up to leave out, at most half of the samples.

    MSER picks the truncation that minimizes the standard error of what remains; here the earliest one that
    is as good within the sampling error of a variance, sqrt(2 / batches), because the minimum itself jumps
    with chance. Batches are taken by their median and clipped, so that one evaluation or plot in the
    middle does not pass for a warm-up.
    """
    data = np.asarray(samples, dtype=np.float64)
    size = _BATCH if len(data) >= _BATCH * _MIN_BATCHES else 1
    batches = _clipped(_batch_medians(data, size))
    if len(batches) < 2:
        return 0
    errors = [_squared_error(batches[start:]) for start in range(len(batches) // 2 + 1)]
    good_enough = min(errors) * (1 + (2 / len(batches)) ** 0.5)
    return next(start for start, error in enumerate(errors) if error <= good_enough) * size


def _batch_medians(data: Array, size: int) -> Array:
    """Medians of consecutive batches; what is left over at the end is left out."""
    num = len(data) // size
    found: Array = np.median(data[: num * size].reshape(num, size), axis=1)
    return found


def _clipped(batches: Array) -> Array:
    """Batches with those far above or below the level of the later half brought back to five robust sd."""
    later = batches[len(batches) // 2 :]
    reach = _EVENT_SDS * mad_sd(later) if len(later) else 0.0
    if reach == 0:
        return batches
    center = float(np.median(later))
    return np.clip(batches, center - reach, center + reach)


def _squared_error(kept: Array) -> float:
    """MSER's criterion: the squared standard error of the mean of what is kept, up to a constant."""
    return float(np.sum((kept - kept.mean()) ** 2)) / len(kept) ** 2
