"""Quantiles of Student's t, so that a small sample gets the wide interval it deserves."""

import math
from functools import lru_cache

_NORMAL_DF = 1e6
"""Above this the t quantile and the normal one agree to six digits (Cornish-Fisher: relative z^2 / 4 df)."""


def student_cdf(t: float, df: float) -> float:
    """Probability that Student's t with `df` degrees of freedom (any positive number) is at most `t`."""
    if df > _NORMAL_DF:
        return 0.5 * math.erfc(-t / math.sqrt(2))
    tail = 0.5 * _incomplete_beta(df / 2, 0.5, df / (df + t * t))
    return tail if t < 0 else 1 - tail


@lru_cache(maxsize=4096)
def student_quantile(probability: float, df: float) -> float:
    """The value that Student's t with `df` degrees of freedom stays below with `probability`.

    Raises:
        ValueError: the probability is not inside (0, 1), or `df` is not positive.
    """
    if not 0 < probability < 1 or not df > 0:
        raise ValueError(f"no t quantile for probability {probability} and {df} degrees of freedom")
    if probability < 0.5:
        return -student_quantile(1 - probability, df)
    low, high = 0.0, 1.0
    while student_cdf(high, df) < probability:
        low, high = high, high * 2
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if student_cdf(middle, df) < probability else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function I_x(a, b), DLMF 8.17.22 (continued fraction)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1) / (a + b + 2):  # where the fraction converges fast; else by symmetry
        return math.exp(log_front) / a * _beta_fraction(a, b, x)
    return 1 - math.exp(log_front) / b * _beta_fraction(b, a, 1 - x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of DLMF 8.17.22, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d, tiny)
            c = _away_from_zero(1 + term / c, tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
