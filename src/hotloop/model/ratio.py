"""A ratio never travels without its interval."""

import msgspec


class Ratio(msgspec.Struct, frozen=True):
    """A ratio with its 95% interval; above 1 is better (faster, smaller)."""

    ratio: float
    low: float
    high: float
