"""How a rate is measured: a warm-up, then repeats, of which all are kept in the spread."""

import time
from collections.abc import Callable

from hotloop.machine.card.repeats import rates_of, spread
from hotloop.model.machine import Rate


def measure_rate(
    work: Callable[[], float],
    method: str,
    *,
    budget_s: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Rate:
    """Return the rate of `work`, which returns how much it did (bytes, operations), and has done it by then.

    Args:
        work: one repeat.
        method: how it is done, in words.
        budget_s: see `rates_of`.
        clock: in seconds.
    """
    return Rate(**spread(rates_of(work, budget_s, clock), method))
