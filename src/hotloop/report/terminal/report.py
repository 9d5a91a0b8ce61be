"""A report in short, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.report.document import Block, Chart, Details, Document, Table
from hotloop.report.terminal.layout import facts, next_steps

SHOWN = ("plan", "step", "findings", "parity", "changes")
"""Sections of which the lead is shown, with the table of the first chart of the first two."""
MAX_ROWS = 8


def render(document: Document) -> RenderableType:
    """Return the summary, ready to print."""
    return Group(*_parts(document))


def render_next(session: str) -> RenderableType:
    """Return what to type next."""
    return next_steps(
        [
            (
                "as a page with charts",
                ["hotloop", "report", session, "--html", "report.html"],
            ),
            ("for a pull request", ["hotloop", "report", session, "--markdown", "report.md"]),
        ]
    )


def _parts(document: Document) -> Iterator[RenderableType]:
    yield Text(document.verdict, style="bold")
    yield Text(document.subtitle, style="dim")
    yield Text("")
    width = max((len(tile.name) for tile in document.tiles), default=0) + 1
    yield facts(((tile.name, f"{tile.value}  {tile.detail}") for tile in document.tiles), key_width=width)
    for section in document.sections:
        if section.anchor not in SHOWN:
            continue
        yield Text(f"\n{section.title}", style="bold")
        if section.lead:
            yield Text(section.lead)
        yield from _table(section.blocks)
        details = [block for block in section.blocks if isinstance(block, Details)]
        yield from (
            Padding(Text(shown(f"{one.badge + ': ' if one.badge else ''}{one.title}")), (0, 0, 0, 2))
            for one in details[:MAX_ROWS]
        )
        if len(details) > MAX_ROWS:
            yield Text(f"  and {len(details) - MAX_ROWS} more")


def _table(blocks: tuple[Block, ...]) -> Iterator[RenderableType]:
    """The figures of the first chart, or the first table: the waterfall, the phases."""
    found = (
        one.table if isinstance(one, Chart) else one for one in blocks if isinstance(one, (Chart, Table))
    )
    table = next(found, None)
    if isinstance(table, Table):
        yield Text("")
        yield _aligned(table)


def _aligned(table: Table) -> RenderableType:
    """Return columns under their names, figures to the right."""
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for at, name in enumerate(table.header):
        grid.add_column(name, justify="right" if at in table.figures else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(shown(_in_lines(cell), lines=True)) for cell in row))
    return grid


def _in_lines(cell: str) -> str:
    """Return `loader_workers(num_workers=2)` as its name with the parameters below it."""
    name, _, params = cell.partition("(")
    if not name.isidentifier() or not params.endswith(")"):
        return cell
    return "\n  ".join([name, *params[:-1].split(", ")])
