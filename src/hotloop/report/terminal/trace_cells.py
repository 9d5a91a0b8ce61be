"""Cells of the tables of a trace report: durations, shares, and names cut to the width they have."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown

NAME_WIDTH = 38
MAX_NAME = 1000
"""Characters looked at: names of a megabyte were seen in damaged traces, and one screen shows 80 columns."""


def table_of(first: str, *columns: tuple[str, str]) -> Table:
    """Return a table with a column of names and columns of figures, each with its justification."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    return table


def add_row(table: Table, *cells: str) -> None:
    """A row whose brackets are brackets, not styles."""
    table.add_row(*(Text(shown(cell)) for cell in cells))


def filled_table(first: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    """Return a table of names and figures without the columns in which no row says anything."""
    said = [at for at in range(len(columns)) if any(row[at + 1] for row in rows)]
    table = table_of(first, *((columns[at], "right") for at in said))
    for row in rows:
        add_row(table, row[0], *(row[at + 1] for at in said))
    return table


def bullet(text: str, style: str = "") -> Table:
    """Return a line of the list, which goes on under itself."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text("-", style=style), Text(shown(text), style=style))
    return grid


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
