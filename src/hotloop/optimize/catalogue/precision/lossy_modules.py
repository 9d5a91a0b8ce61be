"""The activation of lossy_in_half: modules that lose most in half precision are kept out of autocast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.optimize.catalogue.precision.half_runs import both_values
from hotloop.optimize.catalogue.precision.islands import IslandAutocast

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
        self._num_ends = 0
        """Modules whose results half precision rounds to the end of their range."""

    def worse(self, seen: Mapping[Any, tuple[Any, Any]], dtype: Any) -> list[Any]:
        """Return the modules that lose most."""
        ends = [part for part in seen if _rounds_to_one(part)]
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
        kept = [(apart, part) for apart, part in most if not apart <= LOSSY and part not in ends]
        self._lost += [apart for apart, _ in kept]
        self._num_ends += len(ends)
        return [*ends, *(part for _, part in kept)]

    def why(self) -> str:
        """Return how much they lost."""
        off = (
            f"off by {min(self._lost):.1%} to {max(self._lost):.1%} in {self._dtype_name}"
            if self._lost
            else ""
        )
        ends = f"probabilities near 1 are 1 in {self._dtype_name}" if self._num_ends else ""
        return ", ".join(part for part in (off, ends) if part)

    def why_none(self) -> str:
        """Return that none lost much."""
        return f"none of {self.num_seen} modules was off by {LOSSY:.1%} in {self._dtype_name}"


def _rounds_to_one(part: Any) -> bool:
    """Whether it returns probabilities: half precision rounds those near 1 to it, and the loss cannot tell them apart.

    Autocast computes a softmax in fp32 for that, and a sigmoid as it comes. A DCGAN, whose discriminator has a sigmoid
    before its loss, was 1.5 times as fast in bfloat16, and after 16 steps that loss was 100 for good.
    """
    import torch

    return isinstance(part, torch.nn.Sigmoid)
