"""Repeats of a piece of work, timed; with the standard library alone, for Pythons that have nothing else."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

NUM_REPEATS = 7
"""Odd, so that the median is a repeat; 7 repeats of a tenth of a second keep the whole card below 30 s."""
_MIN_REPEATS = 3


def rates_of(
    work: Callable[[], float], budget_s: float, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the rate of each repeat of `work`, which returns how much it did, and has done it by then.

    One repeat before the first warms up and does not count. The repeats end early, but not before the third,
    when they have taken `budget_s`.
    """
    work()
    rates: list[float] = []
    start = now = clock()
    while len(rates) < NUM_REPEATS and (len(rates) < _MIN_REPEATS or now - start < budget_s):
        before = clock()
        amount = work()
        now = clock()
        rates.append(amount / max(now - before, 1e-9))
    return rates


def spread(rates: Sequence[float], method: str) -> dict[str, Any]:
    """Return the fields of a `Rate`."""
    return {
        "median": statistics.median(rates),
        "low": min(rates),
        "high": max(rates),
        "num": len(rates),
        "method": method,
    }
