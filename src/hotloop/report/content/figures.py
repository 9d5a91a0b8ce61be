"""Figures as every rendering writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hotloop.model.quantities import duration
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import PlanStep

NOT_MEASURED = "not measured"


def speedup(ratio: Ratio | PlanStep) -> str:
    """Return a ratio with its interval: `2.10x [1.98, 2.23]`."""
    return str(Ratio(ratio.ratio, ratio.low, ratio.high))


def as_fast(ratio: Ratio) -> str:
    """Return how a sentence says a speed-up: `2.10x as fast [1.98, 2.23]`."""
    return speedup(ratio).replace("x ", "x as fast ", 1)


def money(amount: float) -> str:
    """Return an amount with its cents; of less than one, two digits that say something: `0.012`."""
    small = 0 < abs(amount) < 1
    return f"{amount:,.{max(2, 1 - math.floor(math.log10(abs(amount))))}f}" if small else f"{amount:,.2f}"


def times(low_s: float, middle_s: float, high_s: float) -> str:
    """Return a time with its interval."""
    return f"{duration(middle_s)} [{duration(low_s)}, {duration(high_s)}]"


def label(name: str, params: Mapping[str, object]) -> str:
    """Return an optimization with its parameters as one word: `loader_workers(num_workers=2)`."""
    inside = ", ".join(f"{key}={value}" for key, value in sorted(params.items()))
    return f"{name}({inside})" if inside else name


def long_duration(seconds: float) -> str:
    """Return what a person plans with: `2 h 5 min`, `8.6 min`, `41 s`."""
    if abs(seconds) < 120 or not math.isfinite(seconds):
        return duration(seconds)
    if seconds < 600:
        return f"{seconds / 60:.1f} min"
    minutes = round(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours:,} h {rest} min" if hours else f"{minutes} min"
