"""The report as Markdown, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hotloop.report.document import Block, Chart, Code, Details, Document, Facts, More, Note, Section, Table

MAX_ROWS = 30
"""Of a table; a comment on GitHub ends at 65,536 characters."""
MAX_CELL = 400
LEFT_OUT = ("trials", "timeline")
"""Sections that are long and only for the page."""
_BLANKS = re.compile(r"\n{3,}")
_SPECIAL = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_{}[]()#+-!|~>@$:"} | {"<": "&lt;", "&": "&amp;"}
)


def markdown(document: Document, *, brief: bool = False) -> str:
    """Return the report as GitHub-flavoured Markdown; what comes from the program is escaped.

    Args:
        document: what to show.
        brief: of what short renderings leave out, say so alone.
    """
    walk = _Walk(brief=brief)
    lines = [f"## {text(document.verdict)}", "", f"{code(document.title)} {text(document.subtitle)}", ""]
    lines += [line for one in document.warnings for line in (f"**{text(one)}**", "")]
    if document.tiles:
        lines += ["| | | |", "|---|---|---|"]
        lines += [
            f"| {cell(tile.name)} | **{cell(tile.value)}** | {cell(tile.detail)} |" for tile in document.tiles
        ]
    for section in document.sections:
        if section.anchor not in LEFT_OUT:
            lines += walk.section(section)
    lines += ["", f"<sub>{text(document.footer.split('. ')[0])}</sub>", ""]
    return _BLANKS.sub("\n\n", "\n".join(lines))


class _Walk:
    def __init__(self, *, brief: bool) -> None:
        self._brief = brief

    def section(self, section: Section) -> Iterator[str]:
        if section.title:
            yield from ("", f"### {text(section.title)}", "")
        if section.lead:
            yield from (text(section.lead), "")
        yield from self._blocks(section.blocks)

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[str]:
        for block in blocks:
            yield from self._block(block)

    def _block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Note):
            yield from (text(block.text), "")
        elif isinstance(block, Facts):
            yield from _facts(block)
        elif isinstance(block, Table):
            yield from _table(block)
        elif isinstance(block, Chart):
            if not self._brief or block.table is None:
                yield from (f"**{text(block.title)}.** {text(block.summary)}", "")
            if block.table is not None:
                yield from _table(block.table)
        elif isinstance(block, Code):
            yield from (*fenced(block.text, block.language), "")
        elif isinstance(block, Details):
            yield from self._details(block)
        elif isinstance(block, More):
            yield from self._blocks(block.instead if self._brief else block.blocks)

    def _details(self, block: Details) -> Iterator[str]:
        badge = f"{block.badge}: " if block.badge else ""
        yield from ("<details>", f"<summary>{html(badge + block.title)}</summary>", "")
        yield from self._blocks(block.blocks)
        yield from ("</details>", "")


def _facts(block: Facts) -> Iterator[str]:
    """Yield a list; a row without a word goes on with the one before."""
    items: list[str] = []
    for key, value in block.rows:
        if key or not items:
            items.append(f"{text(key)}: {text(value)}" if key else text(value))
        else:
            items[-1] += f"; {text(value)}"
    yield from (f"- {item}" for item in items)


def _table(table: Table) -> Iterator[str]:
    yield ""
    if table.caption:
        yield from (f"{text(table.caption)}:", "")
    yield f"| {' | '.join(cell(one) for one in table.header)} |"
    yield f"|{'|'.join('---:' if at in table.figures else '---' for at in range(len(table.header)))}|"
    for row in table.rows[:MAX_ROWS]:
        yield f"| {' | '.join(cell(one) for one in row)} |"
    if len(table.rows) > MAX_ROWS:
        yield from ("", f"and {len(table.rows) - MAX_ROWS} more")
    yield ""


def text(value: str) -> str:
    """Return a string that Markdown shows as it is, on one line."""
    return " ".join(value.split()).translate(_SPECIAL)


def cell(value: str) -> str:
    """Return a string that stands in one cell of a table."""
    flat = " ".join(value.split())
    return text(f"{flat[: MAX_CELL - 1]}…" if len(flat) > MAX_CELL else flat)


def code(value: str) -> str:
    """Return a string as inline code; a fence longer than any run of backquotes in it cannot be left."""
    flat = " ".join(value.split())
    fence = "`" * (_longest_run(flat) + 1)
    return f"{fence} {flat} {fence}"


def fenced(value: str, language: str) -> Iterator[str]:
    """Return a block of code, likewise."""
    fence = "`" * max(3, _longest_run(value) + 1)
    yield from (f"{fence}{language}", value, fence)


def html(value: str) -> str:
    """Return a string for an HTML element within Markdown."""
    flat = " ".join(value.split())
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _longest_run(value: str) -> int:
    longest = run = 0
    for char in value:
        run = run + 1 if char == "`" else 0
        longest = max(longest, run)
    return longest
