"""Ratios with as much of their interval as says something."""

from __future__ import annotations

from hotloop.model.ratio import Ratio

WIDE = 2.0
"""An interval whose ends differ by more than this factor says little more than its lower end."""
WORTH = 1.1
"""A lower end below this promises nothing."""


def told_gain(gain: Ratio) -> str:
    """Return a predicted gain: with its interval, or as `at least 1.5x` where the interval is no information."""
    if gain.high <= WIDE * gain.low:
        return str(gain)
    return f"at least {gain.low:.1f}x" if gain.low >= WORTH else f"perhaps {gain.ratio:.1f}x"
