"""From values to places on an axis, and the round values that it is labelled with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Times a power of ten: how far apart labels may be."""
PAD = 1e-9


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """An axis from its lowest to its highest value."""

    low: float
    high: float
    log: bool = False
    said: Callable[[float], str]
    """A label of a value."""
    num: int = 5
    """About so many labels."""

    def at(self, value: float) -> float:
        """Return where a value lies, from 0 to 1; what is beyond an end lies there."""
        low, high, value = (
            math.log(max(one, PAD)) if self.log else one for one in (self.low, self.high, value)
        )
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.0

    def ticks(self) -> list[tuple[float, str]]:
        """Return places of labels, and the labels."""
        values = _decades(self.low, self.high) if self.log else _rounds(self.low, self.high, self.num)
        return [(self.at(value), self.said(value)) for value in values]


def scale(
    values: Sequence[float],
    said: Callable[[float], str],
    *,
    zero: bool = False,
    room: float = 0.0,
    num: int = 5,
) -> Scale:
    """Return a linear axis that holds values.

    Args:
        values: what is no number is left out; none make an axis from 0 to 1.
        said: a label of a value.
        zero: begin at zero.
        room: share of the range that stays free at the upper end, and at the lower one where it is not zero.
        num: about so many labels.
    """
    finite = [one for one in values if math.isfinite(one)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    low = min(0.0, low) if zero else low
    if high <= low:
        low, high = (low, low + 1.0) if zero else (low - abs(low) / 10 - PAD, high + abs(high) / 10 + PAD)
    spare = room * (high - low)
    return Scale(low=low if zero else low - spare, high=high + spare, said=said, num=num)


def _rounds(low: float, high: float, num: int) -> Iterator[float]:
    """Yield round values within a range."""
    rough = (high - low) / max(1, num)
    if not rough > 0 or not math.isfinite(rough):
        return
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * one for one in STEPS if unit * one >= rough * 0.999)
    first = math.ceil(low / step - PAD)
    for number in range(first, math.floor(high / step + PAD) + 1):
        yield number * step


def _decades(low: float, high: float) -> Iterator[float]:
    """Yield powers of ten within a range; where there are few, what is twice and five times one, too."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1.0,) if last - first > 3 else (1.0, 2.0, 5.0)
    for power in range(first, last + 1):
        for factor in factors:
            value = factor * 10.0**power
            if low <= value <= high:
                yield value
