"""Small pieces of markup that all charts are made of."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from hotloop.model.quantities import byte_size, duration

SERIES = (
    "forward",
    "other",
    "data",
    "transfer",
    "backward",
    "communication",
    "optimizer",
    "accent",
)
"""Colours of series that have none of their own."""
NEAR_END = 0.04
"""Of the width: half of a label."""


def place(share: float) -> str:
    """Return a share of the width or height as CSS and SVG write it."""
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"


def hue(name: str) -> str:
    """Return the page's colour of that name."""
    return f"var(--{name})"


def series_hue(number: int) -> str:
    """Return the colour of a series."""
    return hue(SERIES[number % len(SERIES)])


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """Return the names of what is drawn, each beside its colour."""
    items = (
        Markup('<li><i style="background:{}"></i>{}</li>').format(color, name) for name, color in entries
    )
    return Markup('<ul class="legend">{}</ul>').format(joined(items))


def joined(parts: Iterable[Markup]) -> Markup:
    """Return markup one after another."""
    return Markup("").join(parts)


def milliseconds(value: float) -> str:
    """Return a time with its unit."""
    return duration(value / 1e3) if value else "0"


def mebibytes(value: float) -> str:
    """Return a size with its unit."""
    return byte_size(round(value * (1 << 20))) if value else "0"


def times(value: float) -> str:
    """Return a ratio: `1.5x`."""
    return f"{value:.3g}x"


def tick(at: float, said: str) -> Markup:
    """Return a label of the horizontal axis; near an end it stays within the plot."""
    kind = "first" if at < NEAR_END else "last" if at > 1 - NEAR_END else ""
    return Markup('<span class="{}" style="left:{}">{}</span>').format(kind, place(at), said)
