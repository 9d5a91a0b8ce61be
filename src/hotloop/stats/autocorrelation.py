"""How much less a dependent series says than an independent one."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_MAX_AR1 = 0.8
"""Blocks were seen with up to 0.6; ten blocks cannot tell 0.8 from a trend."""


def lag_one(values: Array) -> float:
    """Lag-one autocorrelation, corrected for the bias of short series, between 0 and 0.8.

    The plain estimate falls short by about (1 + 3 rho) / n (Marriott & Pope 1954, Biometrika 41:390).
    Negative estimates count as 0: they would narrow an interval on thin evidence.
    """
    centered = values - values.mean()
    total = float(centered @ centered)
    num = len(values)
    if total == 0 or num <= 3:
        return 0.0
    plain = float(centered[1:] @ centered[:-1]) / total
    return min(_MAX_AR1, max(0.0, (num * plain + 1) / (num - 3)))


def ar1_inflation(values: Array) -> float:
    """Factor by which the variance of the mean exceeds that of independent values: (1 + rho) / (1 - rho)."""
    rho = lag_one(values)
    return (1 + rho) / (1 - rho)


def effective_num(values: Array) -> float:
    """How many independent values say as much about the mean, between 1 and their number.

    Sums autocorrelations over pairs of lags until a pair is no longer positive (Geyer 1992, Statistical
    Science 7:473, initial positive sequence).
    """
    num = len(values)
    rho = _autocorrelations(values)
    if rho is None:
        return float(num)
    time = -1.0
    for lag in range(0, len(rho) - 1, 2):
        pair = rho[lag] + rho[lag + 1]
        if pair <= 0:
            break
        time += 2 * pair
    return min(float(num), max(1.0, num / max(time, 1e-9)))


def _autocorrelations(values: Array) -> Array | None:
    """Autocorrelations up to a third of the series by FFT; None for a constant series."""
    num = len(values)
    centered = values - values.mean()
    if num < 4 or not centered.any():
        return None
    spectrum = np.fft.rfft(centered, 2 * num)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), 2 * num)[: max(2, num // 3)]
    found: Array = covariance / covariance[0]
    return found
