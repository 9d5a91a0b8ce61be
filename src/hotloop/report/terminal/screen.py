"""Where text goes: results to standard output, progress and warnings to standard error."""

from __future__ import annotations

import sys
from time import monotonic

from rich.console import Console, RenderableType
from rich.live import Live as LiveDisplay
from rich.text import Text

PLAIN_EVERY_S = 10.0
"""Without a terminal progress is a plain line, no more often than this."""


class Screen:
    """The user's terminal, or what stands for it.

    Args:
        quiet: no progress.
        no_color: no colours.
        verbose: every line of progress stays.
    """

    def __init__(self, *, quiet: bool = False, no_color: bool = False, verbose: bool = False) -> None:
        color = None if not no_color else True
        self.out = Console(no_color=color, highlight=False, width=None if sys.stdout.isatty() else 80)
        self.err = Console(stderr=True, no_color=color, highlight=False, soft_wrap=True)
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
            self.err.print(Text(text))

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
            self._live.update(Text(f"hotloop: {text}", no_wrap=True, overflow="ellipsis"), refresh=True)
        elif monotonic() - self._last_s >= PLAIN_EVERY_S:
            self._last_s = monotonic()
            self.err.print(Text(f"hotloop: {text}"))

    def done(self) -> None:
        """Take the progress line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None
