"""Where text goes: results to standard output, progress and warnings to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import monotonic

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderableType, RenderHook
from rich.live import Live as LiveDisplay
from rich.segment import Segment
from rich.text import Text

from hotloop.model.foreign_text import shown

PLAIN_EVERY_S = 10.0
"""Without a terminal progress is a plain line, no more often than this."""

_ASCII = str.maketrans({"█": "#", "▒": "-", "…": "~", "°": " ", "–": "-", "—": "-"})
"""What we draw with, for terminals and logs that have ASCII alone."""


def console(*, stderr: bool = False, no_color: bool = False) -> Console:
    """Return a console that takes text for text: no markup, no emoji names, no control characters of others."""
    width = 80 if not stderr and not sys.stdout.isatty() else None
    made = Console(
        stderr=stderr,
        no_color=no_color or None,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=stderr,
        width=width,
    )
    made.push_render_hook(_Sanitizer())
    return made


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


class Screen:
    """The user's terminal, or what stands for it.

    Args:
        quiet: no progress.
        no_color: no colours.
        verbose: every line of progress stays.
    """

    def __init__(self, *, quiet: bool = False, no_color: bool = False, verbose: bool = False) -> None:
        self.out = console(no_color=no_color)
        self.err = console(stderr=True, no_color=no_color)
        self._quiet = quiet
        self._verbose = verbose
        self._live: LiveDisplay | None = None
        self._last_s = -PLAIN_EVERY_S

    def show(self, what: RenderableType) -> None:
        """Print a result."""
        self.done()
        self.out.print(what)

    def note(self, text: str) -> None:
        """Print a line that stays, on standard error."""
        if not self._quiet:
            self.err.print(Text(shown(text)))

    def progress(self, text: str) -> None:
        """Show what is going on: one line that changes, on a terminal; now and then a line, elsewhere."""
        if self._quiet:
            return
        if self._verbose:
            self.note(f"hotloop: {text}")
        elif self.err.is_terminal:
            if self._live is None:
                self._live = LiveDisplay(console=self.err, transient=True, auto_refresh=False)
                self._live.start()
            self._live.update(
                Text(f"hotloop: {shown(text)}", no_wrap=True, overflow="ellipsis"), refresh=True
            )
        elif monotonic() - self._last_s >= PLAIN_EVERY_S:
            self._last_s = monotonic()
            self.err.print(Text(shown(f"hotloop: {text}")))

    def done(self) -> None:
        """Take the progress line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None
