"""Cells of the tables of a trace report: durations, shares, and names cut to the width they have."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.model.foreign_text import shown
from hotloop.report.document import Table

WIDTH = 80
MIN_NAME = 20
MAX_NAME = 1000
"""Characters looked at: names of a megabyte were seen in damaged traces, and one screen shows 80 columns."""


def table(header: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """Return a table of names and figures without the columns in which no row says anything.

    Names are cut to what the figures leave of the screen.
    """
    said = [at for at in range(1, len(header)) if any(row[at] for row in rows)]
    room = WIDTH - sum(2 + max(len(row[at]) for row in (header, *rows)) for at in said)
    return Table(
        (header[0], *(header[at] for at in said)),
        tuple((shortened(row[0], max(MIN_NAME, room)), *(row[at] for at in said)) for row in rows),
        figures=tuple(range(1, len(said) + 1)),
    )


def compact_shapes(text: str) -> str:
    """Return the shapes of an operator's inputs without what is empty."""
    return text.replace("[]", "").replace(",,", "").replace(",]", "]").replace(" ", "")


def shortened(text: str, width: int) -> str:
    """Return the beginning of a foreign text."""
    text = shown(text[:MAX_NAME])
    return text if len(text) <= width else text[: width - 1] + "…"


def tail_of(text: str, width: int) -> str:
    """Return the end of a foreign text: of a path, the file."""
    text = shown(text[-MAX_NAME:])
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def milliseconds(microseconds: float) -> str:
    """Return microseconds as milliseconds, with the digits that a short one needs."""
    if microseconds >= 1e6:
        return f"{microseconds / 1000:,.0f}"
    digits = 2 if microseconds >= 100 or not microseconds else 4
    return f"{microseconds / 1000:,.{digits}f}"


def share_of(part: float, whole: float) -> str:
    """Return a part in percent; empty where there is no whole."""
    return f"{part / whole:.1%}" if whole else ""
