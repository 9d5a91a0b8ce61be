"""From log ratios to ratios, which stay numbers however wide an interval is."""

from __future__ import annotations

import math

from hotloop.model.ratio import Ratio

_LARGEST = 700.0
"""Its exponential, and one over it, are floating-point numbers."""


def ratio_of(center: float, half: float) -> Ratio:
    """Return the ratio of a log ratio and half of its interval, which may be infinite."""
    return Ratio(_exp(center), _exp(center - half), _exp(center + half))


def half_width(ratio: Ratio) -> float:
    """Return half of the interval of a ratio, as a log ratio."""
    return (math.log(ratio.high) - math.log(ratio.low)) / 2


def _exp(log_ratio: float) -> float:
    return math.exp(min(_LARGEST, max(-_LARGEST, log_ratio)))
