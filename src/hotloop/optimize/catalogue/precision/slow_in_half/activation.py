"""The activation of slow_in_half: modules that take longer in half precision are kept out of autocast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.optimize.reduced_precision.half_runs import both_times
from hotloop.optimize.reduced_precision.islands import IslandAutocast

SLOWER = 1.1
"""So many times as slow in half as in fp32, casts to fp32 included, before a module is kept out."""
LEAST_S = 20e-6
"""Per step: what would be saved below it is noise of the clock."""


class SlowModules(IslandAutocast):
    """Times each module both ways."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self._times: list[tuple[float, float]] = []
        """Seconds in half and in fp32 of those that are kept out."""

    def worse(self, seen: Mapping[Any, tuple[Any, Any]], dtype: Any) -> list[Any]:
        """Return the modules that are slower."""
        found = []
        for part, given in seen.items():
            try:
                half, full = both_times(part, *given, dtype)
            except Exception:  # whatever a module raises that is run by itself: it stays under autocast
                continue
            self.num_seen += 1
            if half > SLOWER * full and half - full > LEAST_S:
                self._times.append((half, full))
                found.append(part)
        return found

    def why(self) -> str:
        """Return the times together."""
        half, full = (sum(times) for times in zip(*self._times, strict=True))
        return f"{half * 1e3:.2f} ms a step in half, {full * 1e3:.2f} ms in fp32"

    def why_none(self) -> str:
        """Return that none was slower."""
        return f"none of {self.num_seen} modules was slower in {self._dtype_name}"
