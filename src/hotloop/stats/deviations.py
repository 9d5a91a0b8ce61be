"""How far two loss curves differ, paired step by step, in a few numbers."""

import msgspec
import numpy as np
import numpy.typing as npt

from hotloop.stats.autocorrelation import ar1_inflation

Array = npt.NDArray[np.float64]

_MAX_WINDOWS = 20
"""Windows of 5% of the run: wide enough to average batches, short enough to see a late divergence."""
_RANGE_SHARE = 0.05
"""A loss that has fallen to nearly nothing is judged against 5% of what it fell from."""


class Deviations(msgspec.Struct, frozen=True, kw_only=True):
    """Departures of a curve from the reference, relative to the reference's own level; all at least 0."""

    overall: float
    """Mean over windows of the absolute smoothed deviation."""
    lasting: float
    """Absolute signed mean over the last half: what is systematically worse (or better)."""
    worst: float
    """The largest smoothed deviation of any window: a divergence."""
    learning: float | None
    """Shift over the last quarter as a share of what the reference learned; None: it learned nothing that
    stands out of its noise."""


class Reference:
    """The reference curve in windows, ready to have others compared with it.

    Args:
        losses: at least two.
    """

    def __init__(self, losses: Array) -> None:
        self.losses = losses
        windows = np.array_split(np.arange(len(losses)), min(_MAX_WINDOWS, max(2, len(losses) // 2)))
        self.lengths = np.array([len(window) for window in windows])
        self._begins = np.cumsum(self.lengths) - self.lengths
        means = self.smooth(losses)
        self.noise = _batch_noise(losses)
        self.scale = np.maximum(np.abs(means), max(self.noise, _RANGE_SHARE * float(np.ptp(means))))
        self.scale = np.maximum(self.scale, np.finfo(np.float32).tiny)
        self.learned = self._learned(means)

    def smooth(self, values: Array) -> Array:
        """Means over the windows."""
        return np.asarray(np.add.reduceat(values, self._begins) / self.lengths)

    def deviations(self, losses: Array) -> Deviations:
        """How far the curve departs from this one."""
        relative = self.smooth(losses - self.losses) / self.scale
        last = relative[len(relative) // 2 :]
        return Deviations(
            overall=float(np.abs(relative).mean()),
            lasting=abs(float(last.mean())),
            worst=float(np.abs(relative).max()),
            learning=self._learning_shift(losses),
        )

    def wander(self, losses: Array) -> float:
        """Standard error of the lasting deviation: one draw of it can be near 0 by luck, this is not."""
        relative = self.smooth(losses - self.losses) / self.scale
        last = relative[len(relative) // 2 :]
        return float(np.sqrt(np.mean(last**2) / len(last) * ar1_inflation(relative)))

    def learning_wander(self, losses: Array) -> float:
        """Standard error of the learning shift; 0: the reference learned nothing that stands out of its noise."""
        if self.learned is None:
            return 0.0
        apart = self.smooth(losses - self.losses)
        last = apart[-max(1, len(apart) // 4) :]
        return float(np.sqrt(np.mean(last**2) / len(last) * ar1_inflation(apart / self.scale))) / self.learned

    def independent_windows(self, losses: Array) -> float:
        """So many windows say as much of the departure's size as independent ones would; 1: it parted for good."""
        relative = self.smooth(losses - self.losses) / self.scale
        return len(relative) / ar1_inflation(relative)

    def _learning_shift(self, losses: Array) -> float | None:
        if self.learned is None:
            return None
        last = self._quarter()
        return abs(float((losses[last] - self.losses[last]).mean())) / self.learned

    def _learned(self, means: Array) -> float | None:
        """Fall of the loss from the first window to the last quarter, where it stands out of the noise.

        Out of the noise: four standard errors of the difference of the two means.
        """
        last = self._quarter()
        fall = float(means[0] - self.losses[last].mean())
        error = self.noise * np.sqrt(1 / self.lengths[0] + 1 / len(self.losses[last]))
        return fall if fall > 4 * error and fall > 0 else None

    def _quarter(self) -> slice:
        return slice(len(self.losses) - max(1, len(self.losses) // 4), None)


def _batch_noise(losses: Array) -> float:
    """Standard deviation from batch to batch; second differences, so that a trend does not count.

    The second difference of independent noise has variance 6 sigma^2; the median makes it robust.
    """
    if len(losses) < 3:
        return 0.0
    return float(1.4826 * np.median(np.abs(np.diff(losses, n=2))) / np.sqrt(6))
