"""A report in short, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.report.document import Block, Chart, Details, Document, Table
from hotloop.report.terminal.layout import facts

SHOWN = ("plan", "step", "findings", "parity", "changes")
"""Sections of which the lead is shown, with the table of the first chart of the first two."""
MAX_ROWS = 8


def render(document: Document) -> RenderableType:
    """Return the summary, ready to print."""
    return Group(*_parts(document))


def _parts(document: Document) -> Iterator[RenderableType]:
    yield Text(document.verdict, style="bold")
    yield Text(document.subtitle, style="dim")
    yield Text("")
    yield facts(((tile.name, f"{tile.value}  {tile.detail}") for tile in document.tiles), key_width=19)
    for section in document.sections:
        if section.anchor not in SHOWN:
            continue
        yield Text(f"\n{section.title}", style="bold")
        if section.lead:
            yield Text(section.lead)
        yield from _table(section.blocks)
        details = [block for block in section.blocks if isinstance(block, Details)]
        yield from (
            Text(f"  {one.badge + ': ' if one.badge else ''}{one.title}") for one in details[:MAX_ROWS]
        )
        if len(details) > MAX_ROWS:
            yield Text(f"  and {len(details) - MAX_ROWS} more")


def _table(blocks: tuple[Block, ...]) -> Iterator[RenderableType]:
    """The figures of the first chart: the waterfall, the phases."""
    found = (
        one.table if isinstance(one, Chart) else one for one in blocks if isinstance(one, (Chart, Table))
    )
    table = next(found, None)
    if isinstance(table, Table):
        width = max(len(row[0]) for row in table.rows) if table.rows else 0
        yield facts(((row[0], "  ".join(row[1:])) for row in table.rows), key_width=min(34, width + 1))
