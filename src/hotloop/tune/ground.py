"""What every trial is judged by."""

from __future__ import annotations

import msgspec

from hotloop.stats.floor import Spread
from hotloop.tune.references import References


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What the program against itself gave."""

    floor: float
    spread: Spread
    references: References
    max_rounds: int | None = None
    """Rounds until the program ends by itself; None: it does not."""

    def rounds(self, wanted: int) -> int:
        """Return so many rounds, or as many as the program has."""
        return min(wanted, self.max_rounds or wanted)
