"""Numbers with their units, and lists, as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_SIZES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
_MINUTES_FROM_S = 120.0
_LONG_TIMES = (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it: `12.3 ms`."""
    if abs(seconds) >= _MINUTES_FROM_S:
        return f"{seconds / 60:.1f} min"
    unit, factor = _unit(seconds)
    return f"{significant(seconds / factor)} {unit}" if seconds else "0 s"


def span(seconds: float) -> str:
    """Return a time that may be long in the unit that suits it: `4.50 days`."""
    unit, size = next((one for one in _LONG_TIMES if seconds >= one[1]), ("s", 1.0))
    return f"{significant(seconds / size)} {unit}"


def _unit(seconds: float) -> tuple[str, float]:
    """Return the largest unit that leaves at least one; what rounds up to a thousand is one of the next."""
    size = _rounded(abs(seconds))
    return next(((unit, factor) for unit, factor in _TIMES if size >= factor * (1 - 1e-9)), _TIMES[-1])


def _rounded(size: float) -> float:
    return float(f"{size:.3g}")


def byte_size(num: float) -> str:
    """Return a size in binary units: `1.21 GiB`."""
    for unit, factor in _SIZES:
        if num >= 0.9995 * factor:  # not 1,024 of the unit below
            return f"{significant(num / factor)} {unit}"
    return f"{num:.0f} B"


def percent(share: float) -> str:
    """Return a share of 1 as per cent."""
    return f"{100 * share:.1f}%"


def rate(per_s: float) -> str:
    """Return a rate with three significant digits and thousands separated."""
    return f"{per_s:,.0f}" if per_s >= 100 else significant(per_s)


def scaled(num: float) -> str:
    """Return a number with the prefix of its unit: `1.23 G`; the unit is put behind it."""
    for prefix, factor in _PREFIXES:
        if num >= factor:
            return f"{significant(num / factor)} {prefix}"
    return f"{num:.0f} "


def significant(value: float) -> str:
    """Return three significant digits without an exponent."""
    if value == 0:
        return "0"
    size = _rounded(abs(value))
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if size < 10 else f"{value:.1f}"


def counted(num: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 step`, `1,000 steps`.

    Args:
        num: how many.
        one: the noun of one.
        many: of all other numbers; with an s, unless given.
    """
    return f"{num:,} {one if num == 1 else many or f'{one}s'}"


def average(num: float, one: str, many: str | None = None) -> str:
    """Return a mean count with its noun: `1 entry`, `1.5 entries`."""
    return f"{plain(num)} {one if plain(num) == '1' else many or f'{one}s'}"


def listed(words: Sequence[str], *, last: str = "and") -> str:
    """Return words as a list in a sentence: "a", "a and b", "a, b and c"."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def plain(num: float) -> str:
    """Return a mean count without decimals that say nothing: `1`, `1.5`, `12`; what is rare is `<0.1`, never zero."""
    if 0 < num < 0.05:
        return "<0.1"
    return f"{num:,.0f}" if num >= 10 or abs(num - round(num)) < 0.05 else f"{num:.1f}"


def parts(seconds: Sequence[float], total_s: float) -> list[str]:
    """Return the times of a whole's parts, all in the whole's unit, so that what is shown adds up to what is shown.

    Args:
        seconds: the parts.
        total_s: their sum; four of its digits are shown.
    """
    unit, factor = _unit(total_s)
    digits = max(0, 3 - math.floor(math.log10(_rounded(total_s) / factor))) if total_s > 0 else 0
    return [f"{text} {unit}" for text in _added_up([each / factor for each in seconds], digits)]


def shares(seconds: Sequence[float]) -> list[str]:
    """Return the parts as per cent of their sum, so that what is shown adds up to 100.0%."""
    total_s = sum(seconds)
    return [
        f"{text}%" for text in _added_up([100 * each / total_s if total_s else 0.0 for each in seconds], 1)
    ]


def _added_up(values: Sequence[float], digits: int) -> list[str]:
    """Round so that the sum is the rounded sum: the largest remainders are rounded up."""
    scale = 10.0**digits
    ticks = [value * scale for value in values]
    whole = [math.floor(tick) for tick in ticks]
    up = sorted(range(len(ticks)), key=lambda at: whole[at] - ticks[at])[: round(sum(ticks)) - sum(whole)]
    return [f"{(count + (at in up)) / scale:,.{digits}f}" for at, count in enumerate(whole)]
