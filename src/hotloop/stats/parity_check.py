"""One number of a loss curve, and how far it may depart."""

from __future__ import annotations

import msgspec

MULTIPLE = 3.0
"""A candidate that departs at most so many times as far as the floor passes, however little is known of the floor:
where rounding is all, two draws with ten windows each differ by more once in a hundred (t with 10 degrees)."""


class Check(msgspec.Struct, frozen=True):
    """One number that a candidate is held to."""

    method: str
    """What is compared."""
    statistic: float
    limit: float
    """Up to here it passes."""
    refusal: float
    """Beyond this it fails; between the two the floor is not known well enough."""
    blind: bool = False
    """What has to be seen is below the limit."""

    @property
    def departure(self) -> float:
        """How far it is, of what passes."""
        return self.statistic / self.limit

    @property
    def failed(self) -> bool:
        """Whether it is too far for one more run of the original."""
        return self.statistic > self.refusal
