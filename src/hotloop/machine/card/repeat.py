"""How a rate is measured: a warm-up, then repeats, of which all are kept in the spread."""

import statistics
import time
from collections.abc import Callable

from hotloop.model.machine import Rate

NUM_REPEATS = 7
"""Odd, so that the median is a repeat; 7 repeats of a tenth of a second keep the whole card below 30 s."""
_MIN_REPEATS = 3


def measure_rate(
    work: Callable[[], float],
    method: str,
    *,
    budget_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Rate:
    """Return the rate of `work`, which returns how much it did (bytes, operations), and has done it by then.

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
    return Rate(
        median=statistics.median(rates), low=min(rates), high=max(rates), num=len(rates), method=method
    )
