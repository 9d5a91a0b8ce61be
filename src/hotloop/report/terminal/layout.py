"""Shapes that several reports share: lines with a hanging indent, and commands that can be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.model.foreign_text import shown

WIDTH = 80


def facts(rows: Iterable[tuple[str, str]], *, key_width: int = 9, style: str = "") -> Table:
    """Return rows of a word and what is said of it; what is too long goes on under itself.

    A row without a word goes on where the one before ended.
    """
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=key_width, overflow="fold")
    table.add_column(overflow="fold")
    for key, text in rows:
        table.add_row(Text(shown(key)), Text(shown(text), style=style))
    return table


def paste(words: Sequence[str], *, width: int = WIDTH) -> str:
    """Return a command that a shell reads as it stands, on several lines where it is longer than the screen."""
    lines = [""]
    for word in map(shlex.quote, map(shown, words)):
        # Two columns for the space and the backslash of a line that goes on.
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width - 2:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n".join(lines)


def next_steps(steps: Sequence[tuple[str, Sequence[str]]]) -> RenderableType:
    """Return what to type next: what for, and the command, which can be pasted."""
    return _NextSteps(tuple((what, tuple(words)) for what, words in steps))


@dataclass(frozen=True)
class _NextSteps:
    """Each command beside what it is for where both fit on a line, else on lines of its own."""

    steps: tuple[tuple[str, tuple[str, ...]], ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = max(len(what) for what, _ in self.steps) + 2
        yield Text("")
        yield Text("next", style="bold")
        for what, words in self.steps:
            line = shlex.join(map(shown, words))
            if width + len(line) + 2 <= options.max_width:
                yield Text(f"  {what:<{width}}{line}")
            else:
                yield Text(f"  {what}")
                # A word that is longer than the screen is not broken: two lines would be two commands.
                yield Text(paste(words, width=options.max_width), no_wrap=True, overflow="ignore")
