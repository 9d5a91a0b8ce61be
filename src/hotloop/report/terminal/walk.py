"""A document on a terminal: in short, or with everything that it holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from hotloop.model.foreign_text import shown
from hotloop.report.document import Block, Chart, Code, Details, Document, Facts, More, Note, Section, Table
from hotloop.report.terminal.bars import COLORS_BY_NAME
from hotloop.report.terminal.layout import facts

MAX_ROWS = 8
"""Of the details that a section lists in short."""
MAX_KEY = 28
MAX_BAR, MIN_BAR = 24, 6
"""Columns of the longest bar of a table; with less room than for the shorter one there are none."""
MAX_NAME = 34
"""Columns of a table's first column where bars stand beside it."""
MAX_PARAMS = 30
"""Columns of the parameters below a name."""
GAP = 2
_BADGES = {"info": "cyan", "warning": "bold yellow", "error": "bold red"}
_TONES = {"warning": "bold yellow", "strong": "bold", "dim": "dim"}


def render_blocks(blocks: Sequence[Block], *, verbose: bool = False) -> RenderableType:
    """Return blocks of a document, ready to print."""
    return Group(*_Walk(verbose=verbose).blocks(blocks))


def render(document: Document, *, verbose: bool = False) -> RenderableType:
    """Return a document, ready to print.

    Args:
        document: what to show.
        verbose: show what short renderings leave out, too.
    """
    return Group(*_Walk(verbose=verbose).parts(document))


class _Walk:
    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose

    def parts(self, document: Document) -> Iterator[RenderableType]:
        for note in document.warnings:
            yield from (Text(shown(note), style=_TONES["warning"]), Text(""))
        yield Text(shown(document.verdict), style="bold")
        if document.subtitle:
            yield Text(shown(document.subtitle), style="dim")
        if document.tiles:
            rows = [(tile.name, f"{tile.value}  {tile.detail}".rstrip()) for tile in document.tiles]
            yield from (Text(""), facts(rows, key_width=max(len(key) for key, _ in rows) + 1))
        for section in document.sections:
            yield Text("")
            yield from self._section(section)

    def _section(self, section: Section) -> Iterator[RenderableType]:
        if section.title:
            yield Text(shown(section.title), style="bold")
        if section.lead:
            yield Text(shown(section.lead))
        yield from self.blocks(section.blocks, apart=bool(section.title or section.lead))

    def blocks(self, blocks: Sequence[Block], *, apart: bool = False) -> Iterator[RenderableType]:
        """Yield the visible lines of blocks."""
        yield from self._blocks(list(self._unfolded(blocks)), apart=apart)

    def _unfolded(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Put what is left out in short, or the line that stands for it, in its place."""
        for block in blocks:
            if not isinstance(block, More):
                yield block
            else:
                yield from self._unfolded(block.blocks if self._verbose else block.instead)

    def _blocks(self, blocks: Sequence[Block], *, apart: bool) -> Iterator[RenderableType]:
        """Yield blocks with a blank line between two of different kinds."""
        width = _key_width(blocks)
        before: Block | None = None
        listed = 0
        for block in blocks:
            listed = listed + 1 if isinstance(block, Details) and not block.open else 0
            if listed > MAX_ROWS and not self._verbose:
                continue
            kind = _flow(block)
            if (before is None and apart and kind == "table") or (
                before is not None and (kind != _flow(before) or kind == "table")
            ):
                yield Text("")
            yield from self._block(block, width)
            before = block
        num = sum(isinstance(block, Details) and not block.open for block in blocks)
        if num > MAX_ROWS and not self._verbose:
            yield Text(f"  and {num - MAX_ROWS} more")

    def _block(self, block: Block, width: int) -> Iterator[RenderableType]:
        if isinstance(block, Facts):
            yield facts(block.rows, key_width=width)
        elif isinstance(block, Note):
            yield Text(shown(block.text), style=_TONES.get(block.tone, ""))
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Chart):
            yield from _table(block.table) if block.table is not None else [Text(shown(block.summary))]
        elif isinstance(block, Code):
            yield from (Text(f"  {shown(line)}") for line in block.text.splitlines())
        elif isinstance(block, Details):
            yield from self._details(block)

    def _details(self, block: Details) -> Iterator[RenderableType]:
        head = Text()
        if block.badge:
            name = f"[{shown(block.name)}]" if block.name else ""
            head.append(f"{block.badge}{name}{'' if name else ':'}", style=_BADGES.get(block.badge, "bold"))
            head.append(" ")
        head.append(shown(block.title))
        yield Padding(head, (0, 0, 0, 0 if block.open else 2))
        if block.open or self._verbose:
            inner = self.blocks(block.blocks)
            yield from (Padding(one, (0, 0, 0, 2 if block.open else 4)) for one in inner)


def _flow(block: Block) -> str:
    """What stands without a blank line between: rows of facts, sentences, titles of details."""
    if isinstance(block, (Table, Chart, Code)) or (isinstance(block, Details) and block.open):
        return "table"
    return "rows" if isinstance(block, Facts) else "lines"


def _key_width(blocks: Sequence[Block]) -> int:
    keys = (len(key) for block in blocks if isinstance(block, Facts) for key, _ in block.rows)
    return min(MAX_KEY, max(keys, default=0) + 1)


def _table(table: Table) -> Iterator[RenderableType]:
    """Yield columns under their names, figures to the right, bars behind them."""
    if table.caption:
        yield Text(shown(table.caption), style="bold")
    yield _Grid(table)


@dataclass(frozen=True)
class _Grid:
    """The rows of a table, with bars where the columns leave room for them."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = self.table
        rows = [[_in_lines(shown(cell)) for cell in row] for row in table.rows]
        bars = _bars(table, rows, options.max_width)
        grid = Grid(
            box=None,
            pad_edge=False,
            padding=(0, GAP, 0, 0),
            header_style="dim",
            show_header=any(table.header),
        )
        for at, name in enumerate(table.header):
            right = at in table.figures
            grid.add_column(
                Text(name),
                justify="right" if right else "left",
                overflow="fold",
                no_wrap=right,
                max_width=MAX_NAME if bars and not at else None,
            )
        if bars:
            grid.add_column("", no_wrap=True, overflow="crop")
        for at, row in enumerate(rows):
            grid.add_row(*map(Text, row), *bars[at : at + 1])
        yield grid


def _bars(table: Table, rows: Sequence[Sequence[str]], width: int) -> list[Text]:
    """Return a bar for each row, in what the columns leave of the screen; none where that is too little."""
    longest = max(table.bars, default=0.0)
    if longest <= 0:
        return []
    widths = [
        max(max(map(len, cell.split("\n"))) for cell in column)
        for column in zip(table.header, *rows, strict=True)
    ]
    left = width - min(widths[0], MAX_NAME) - sum(widths[1:]) - GAP * len(widths)
    if left < MIN_BAR:
        return []
    columns = min(MAX_BAR, left) / longest
    hues = table.hues or ("",) * len(rows)
    return [
        Text("█" * max(1, round(size * columns)) if size > 0 else "", style=COLORS_BY_NAME.get(hue, "green"))
        for size, hue in zip(table.bars, hues, strict=True)
    ]


def _in_lines(cell: str) -> str:
    """Return `loader_workers(num_workers=2)` as its name with the parameters below it; `bool(tensor)` as it is."""
    name, _, params = cell.partition("(")
    if not name.isidentifier() or not params.endswith(")") or "=" not in params:
        return cell
    words = params[:-1].replace(", ", " ")
    return "\n".join([name, *textwrap.wrap(words, MAX_PARAMS, initial_indent="  ", subsequent_indent="  ")])
