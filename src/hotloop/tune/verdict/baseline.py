"""What every trial is judged by."""

from __future__ import annotations

import msgspec

from hotloop.stats.floor import Spread
from hotloop.tune.verdict.reference_losses import ReferenceLosses


class NoiseBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """What the program against itself gave."""

    floor: float
    spread: Spread
    references: ReferenceLosses
    max_rounds: int | None = None
    """Rounds until the program ends by itself; None: it does not."""

    def rounds(self, wanted: int) -> int:
        """Return so many rounds, or as many as the program has."""
        return min(wanted, self.max_rounds or wanted)
