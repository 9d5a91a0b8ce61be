"""The activation of lossy_in_half: modules that lose most in half precision are kept out of autocast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.optimize.reduced_precision.half_runs import both_values
from hotloop.optimize.reduced_precision.islands import IslandAutocast

LOSSY = 2.0**-6
"""Of outputs or gradients relative to their size. A sum of products whose terms are rounded to 8 bits is off by about
2^-9; four times the roundoff of bfloat16 and more is lost where large terms cancel."""
MOST = 0.25
"""Of the modules: with more in fp32 there is little left of autocast."""


class LossyModules(IslandAutocast):
    """Computes each module both ways."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self._lost: list[float] = []

    def worse(self, seen: Mapping[Any, tuple[Any, Any]], dtype: Any) -> list[Any]:
        """Return the modules that lose most."""
        lost = []
        for part, given in seen.items():
            try:
                lost.append((both_values(part, *given, dtype), part))
            except Exception:  # whatever a module raises that is run by itself: it stays under autocast
                continue
        self.num_seen += len(lost)
        lost.sort(key=lambda one: -one[0])
        most = lost[: max(1, int(MOST * len(lost)))]
        # What is no number is lost.
        kept = [(apart, part) for apart, part in most if not apart <= LOSSY]
        self._lost += [apart for apart, _ in kept]
        return [part for _, part in kept]

    def why(self) -> str:
        """Return how much they lost."""
        return f"off by {min(self._lost):.1%} to {max(self._lost):.1%} in {self._dtype_name}"

    def why_none(self) -> str:
        """Return that none lost much."""
        return f"none of {self.num_seen} modules was off by {LOSSY:.1%} in {self._dtype_name}"
