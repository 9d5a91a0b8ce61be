"""When more pairs would not help.

Stochastic curtailment (Lan, Simon & Halperin 1982, Sequential Analysis 1:207).
"""

import math

from hotloop.model.ratio import Ratio
from hotloop.stats.student import student_cdf, student_quantile

_CHANCE = 0.05
"""Less than one chance in twenty that the pairs left settle it: their time is better spent elsewhere."""


def can_still_settle(
    ratio: Ratio, *, edge: float, num_pairs: int, max_pairs: int, level: float, df: float
) -> bool:
    """Whether the pairs left have at least one chance in twenty to end in faster, slower or same.

    Stopping for this reason never makes a wrong claim more likely, so it spends nothing.

    Args:
        ratio: the estimate and its interval at this look.
        edge: upper end of the band around 1 that counts as the same.
        num_pairs: pairs so far.
        max_pairs: pairs at the last look.
        level: two-sided error level of the interval.
        df: degrees of freedom of the interval.
    """
    center, half = math.log(ratio.ratio), math.log(ratio.high / ratio.low) / 2
    error = half / student_quantile(1 - level / 2, df) * math.sqrt(max(0.0, 1 - num_pairs / max_pairs))
    half_then = half * math.sqrt(num_pairs / max_pairs)
    outside = _chance_above(math.log(edge) + half_then, abs(center), error, df)
    room = math.log(edge) - half_then
    inside = 1 - _chance_above(room, abs(center), error, df) if room > 0 else 0.0
    return max(outside, inside) >= _CHANCE


def _chance_above(value: float, center: float, error: float, df: float) -> float:
    if error == 0:
        return float(center > value)
    return student_cdf((center - value) / error, df)
