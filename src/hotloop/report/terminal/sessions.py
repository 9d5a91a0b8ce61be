"""The stored sessions as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.model.quantities import byte_size, counted
from hotloop.report.terminal.layout import WIDTH, next_steps

_VERDICT = 3
"""The column that takes what room the others leave."""
_MAX_NAME = 20
"""A stamp and a number; a file that was renamed has its name folded."""


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session, as a list shows it."""

    name: str
    when: str
    """When it was last written to: tuning that goes on with an older session makes it the newest."""
    kind: str | None
    """`observe`, `diagnose` or `tune`; None: it cannot be read."""
    command: str | None
    verdict: str
    size_bytes: int


def render(found: Sequence[StoredSession]) -> RenderableType:
    """Return the list in the order in which it is given."""
    if not found:
        return Text("no session is stored here; hotloop observe COMMAND makes one")
    names = ("session", "updated", "what", "verdict", "size")
    rows = [_cells(one) for one in found]
    widths = [max(len(row[at]) for row in (names, *rows)) for at in range(len(names))]
    widths[0] = min(widths[0], _MAX_NAME)
    widths[_VERDICT] += WIDTH - sum(widths) - 2 * (len(names) - 1)
    order = "; the last updated is the first" if len(found) > 1 else ""
    total = byte_size(sum(one.size_bytes for one in found))
    return Group(
        _line(names, widths, "dim"),
        *(part for one, row in zip(found, rows, strict=True) for part in _session(one, row, widths)),
        Text(f"{counted(len(found), 'session')}, {total}{order}"),
        next_steps([("show one", ["hotloop", "report", found[0].name])]),
    )


def _cells(one: StoredSession) -> tuple[str, ...]:
    return shown(one.name), one.when, one.kind or "unknown", shown(one.verdict), byte_size(one.size_bytes)


def _session(one: StoredSession, row: Sequence[str], widths: Sequence[int]) -> Iterator[RenderableType]:
    """One session, and the command under it."""
    yield _line(row, widths)
    if one.command:
        yield Padding(Text(shown(one.command), style="dim"), (0, 0, 0, 2))


def _line(cells: Sequence[str], widths: Sequence[int], style: str = "") -> Table:
    """Cells in columns as wide as those of every other line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for at, width in enumerate(widths):
        table.add_column(width=width, justify="right" if at == len(widths) - 1 else "left", overflow="fold")
    table.add_row(*(Text(cell, style=style) for cell in cells))
    return table
