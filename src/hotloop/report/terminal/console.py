"""Consoles that take text for text, whoever wrote it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment

from hotloop.model.foreign_text import shown
from hotloop.report.terminal.layout import WIDTH

_ASCII = str.maketrans({"█": "#", "▒": "-", "…": "~", "°": " ", "–": "-", "—": "-"})
"""What we draw with, for terminals and logs that have ASCII alone."""


def console(*, stderr: bool = False, no_color: bool = False) -> Console:
    """Return a console that takes text for text: no markup, no emoji names, no control characters of others."""
    made = (_Told if stderr else Console)(
        stderr=stderr,
        no_color=no_color or None,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=stderr,
        width=_told_width() if stderr else screen_width(),
    )
    made.push_render_hook(_Sanitizer())
    return made


def wraps(console: Console) -> bool:
    """Whether lines break between words: on a terminal, and where COLUMNS says how wide a file may be."""
    return console.is_terminal or bool(_columns())


class _Told(Console):
    """What is told beside the result: who reads it may go away, and the work goes on."""

    def on_broken_pipe(self) -> None:
        """Print no more."""
        self.quiet = True


class _Sanitizer(RenderHook):
    """The last place that all text passes: whatever a report forgot, nothing of others steers the terminal."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Sanitized(renderable) for renderable in renderables]


class _Sanitized:
    def __init__(self, what: ConsoleRenderable) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        ascii_only = options.ascii_only
        for segment in console.render(self._what, options):
            if segment.control:
                yield segment
                continue
            text = shown(segment.text, lines=True)
            yield Segment(text.translate(_ASCII) if ascii_only else text, segment.style)


def _columns() -> int | None:
    """What COLUMNS says; None: no number."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else None


def _told_width() -> int | None:
    """None: as COLUMNS or the terminal says; of a width of 0 nothing would be left to read."""
    return WIDTH if _columns() == 0 else None


def screen_width() -> int:
    """80 columns, or fewer where COLUMNS or else the terminal says so."""
    return min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns)
