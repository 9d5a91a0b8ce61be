"""Reading in order against reading at random: of comparable rows, over their repeats, with an interval."""

from __future__ import annotations

import math

from hotloop.model.data import BenchReport, ReadRate
from hotloop.model.ratio import Ratio
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval


def in_order_against_random(report: BenchReport) -> tuple[str, int, Ratio] | None:
    """Return the cache that was looked at, the number of rows on each side, and how much faster reading in order is.

    A row in order is compared with the one at random by as many processes, repeat by repeat, cold where there is a cold
    read. None: there are not two such pairs of rows, or too few repeats.
    """
    cache = "cold" if any(one.cache == "cold" for one in report.rates) else "warm"
    rows = {(one.order, one.num_workers): one for one in report.rates if one.cache == cache}
    workers = sorted({num for _, num in rows})
    logs = [
        _log_ratios(rows["sequential", num], rows["random", num])
        for num in workers
        if ("sequential", num) in rows and ("random", num) in rows
    ]
    told = [each for each in logs if len(each) >= MIN_BLOCKS]
    return (cache, len(told), ratio_interval(told)) if len(told) >= 2 else None


def _log_ratios(order: ReadRate, chance: ReadRate) -> list[float]:
    both = zip(order.repeats_bytes_per_s, chance.repeats_bytes_per_s, strict=False)
    return [math.log(first / second) for first, second in both]
