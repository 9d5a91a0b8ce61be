"""A ratio never travels without its interval."""

import msgspec


class Ratio(msgspec.Struct, frozen=True):
    """A ratio with its 95% interval; above 1 is better (faster, smaller)."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it as messages say it: `2.10x [1.98, 2.23]`."""
        return f"{self.ratio:.2f}x [{self.low:.2f}, {self.high:.2f}]"
