"""Where a series changes its level: PELT (Killick, Fearnhead & Eckley 2012, JASA 107:1590)."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hotloop.stats.robust import mad_sd, winsorized

Array = npt.NDArray[np.float64]

_MIN_SEGMENT = 5
"""Shorter than this is an event, not a level."""
_PENALTY = 3.0
"""Times log n and the noise variance: the modified BIC's weight for a change of mean (Zhang & Siegmund 2007,
Biometrics 63:22)."""
_MAX_RHO = 0.8
"""Steps and blocks were seen with up to 0.6; beyond 0.8 wander and a change of level are one thing."""


def change_points(samples: Sequence[float], *, min_segment: int = _MIN_SEGMENT) -> tuple[int, ...]:
    """First indices of the segments after the first one, ascending; empty where the level never changes.

    Rare long events do not count: a running median takes them out first. Autocorrelation raises the
    penalty, so that slow wander is not cut into levels.
    """
    data = np.asarray(samples, dtype=np.float64)
    if len(data) < 2 * min_segment:
        return ()
    calm = running_median(data)
    noise = _noise_variance(data)
    if noise == 0:
        noise = max(float(np.var(calm)) * 1e-9, np.finfo(np.float64).tiny)
    return _pelt(calm, _PENALTY * noise * math.log(len(data)), min_segment)


def running_median(data: Array, width: int = 5) -> Array:
    """Median of each value and its neighbours: events of up to two steps vanish, edges stay."""
    padded = np.pad(data, width // 2, mode="edge")
    found: Array = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return found


def _noise_variance(data: Array) -> float:
    """Long-run variance about the level, as an AR(1) has it, from differences, which levels hardly touch.

    Differences of an AR(1) have variance 2 sigma^2 (1 - rho) and lag-one autocorrelation -(1 - rho) / 2;
    its means have the variance of independent values with sigma^2 (1 + rho) / (1 - rho), and running
    medians of normal data pi / 2 times that (the efficiency of a median).
    """
    steps = winsorized(np.diff(data))
    power = float(steps @ steps)
    if power == 0:
        return 0.0
    rho = min(_MAX_RHO, max(0.0, 1 + 2 * float(steps[1:] @ steps[:-1]) / power))
    return math.pi / 2 * mad_sd(steps) ** 2 / 2 * (1 + rho) / (1 - rho) ** 2


def _pelt(data: Array, penalty: float, min_segment: int) -> tuple[int, ...]:
    """Optimal partition by squared error plus penalty, candidates pruned as they become hopeless."""
    sums = np.concatenate(([0.0], np.cumsum(data - data.mean())))
    squares = np.concatenate(([0.0], np.cumsum((data - data.mean()) ** 2)))
    best = np.full(len(data) + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(len(data) + 1, dtype=np.int64)
    starts = np.zeros(1, dtype=np.int64)
    for end in range(min_segment, len(data) + 1):
        if end >= 2 * min_segment:
            starts = np.append(starts, end - min_segment)
        cost = (
            best[starts] + squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        )
        choice = int(np.argmin(cost))
        best[end], last[end] = cost[choice] + penalty, starts[choice]
        starts = starts[cost <= best[end]]
    return _walk_back(last)


def _walk_back(last: npt.NDArray[np.int64]) -> tuple[int, ...]:
    found: list[int] = []
    end = len(last) - 1
    while last[end] > 0:
        end = int(last[end])
        found.append(end)
    return tuple(reversed(found))
