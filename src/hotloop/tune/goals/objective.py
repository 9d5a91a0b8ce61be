"""What a gain is.

For speed and for cost it is the logarithm of the time ratio, for memory that of the ratio of peaks. With a limit of
memory it is first memory, until a plan within the limit is proven, and time from then on.
"""

from __future__ import annotations

import math

import msgspec

from hotloop.model.goal import Aim, Goal
from hotloop.tune.goals.gains import Gains
from hotloop.tune.goals.limit import Limit


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """The user's aim, and how far it is reached."""

    aim: Aim = Aim()
    original_bytes: int | None = None
    """Peak of the program as it is; None: not measured yet."""
    reached: bool = False
    """A plan within the limit was proven."""

    @property
    def needed(self) -> float:
        """Log ratio of peaks that brings the program within the limit; up to 0: it is there as it is."""
        if self.aim.fit_bytes is None or self.original_bytes is None:
            return -math.inf
        return math.log(self.original_bytes / self.aim.fit_bytes)

    @property
    def must_shrink(self) -> bool:
        """Whether the program as it is does not stay within the limit."""
        return self.needed > 0

    @property
    def by_memory(self) -> bool:
        """Whether a gain is memory now: with a limit until it is known that the program is within it."""
        if self.aim.goal is Goal.MEMORY:
            return True
        open_limit = self.aim.fit_bytes is not None and not self.reached
        return open_limit and (self.original_bytes is None or self.must_shrink)

    def limit(self, speeds: Gains, peaks: Gains | None, half_width: float) -> Limit | None:
        """Return what a plan has to stay within; None: nothing.

        Args:
            speeds: log gains of time.
            peaks: log gains of memory; None: not counted.
            half_width: of the interval of a log gain of time after as many sets as a proof may have: a plan nearer to
                the slowest that is allowed could not be shown to keep to it.
        """
        if peaks is None:
            return None
        if self.aim.fit_bytes is not None:
            return Limit(peaks, self.needed)
        return Limit(speeds, half_width - math.log1p(self.aim.max_slowdown))

    def least(self, proven: float) -> float | None:
        """Return the log gain below which a proof says nothing; None: that of the least gain that is claimed.

        Args:
            proven: log gain of the plan that was proven; 0: none was.
        """
        if self.aim.fit_bytes is None or not self.must_shrink:
            return None
        return proven if self.reached else self.needed
