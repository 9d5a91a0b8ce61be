"""Numbers with their units, as people read them."""


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it: `12.3 ms`."""
    size = abs(seconds)
    if size >= 120:
        return f"{seconds / 60:.1f} min"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if size >= factor:
            return f"{significant(seconds / factor)} {unit}"
    return f"{seconds * 1e9:.0f} ns" if size else "0 s"


def byte_size(num: float) -> str:
    """Return a size in binary units: `1.21 GiB`."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if num >= factor:
            return f"{significant(num / factor)} {unit}"
    return f"{num:.0f} B"


def percent(share: float) -> str:
    """Return a share of 1 as per cent."""
    return f"{100 * share:.1f}%"


def rate(per_s: float) -> str:
    """Return a rate with three significant digits and thousands separated."""
    return f"{per_s:,.0f}" if per_s >= 100 else significant(per_s)


def significant(value: float) -> str:
    """Return three significant digits without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
