"""A second quantity that a plan has to stay within: time where memory is the goal, memory where time is."""

from __future__ import annotations

import msgspec

from hotloop.tune.goals.gains import Gains


class Limit(msgspec.Struct, frozen=True):
    """What of the other quantity a plan may lose, or has to gain."""

    gains: Gains
    """Of the other quantity."""
    least: float
    """Log gain of the whole plan."""
