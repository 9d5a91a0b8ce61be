"""Where text goes: results to standard output, progress and warnings to standard error."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Sequence
from time import monotonic

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from hotloop.model.foreign_text import obeyed_by_none, shown
from hotloop.report.terminal.console import console, wraps
from hotloop.report.terminal.layout import WIDTH
from hotloop.report.terminal.status_line import StatusLine, stamped

_NUMBERS = re.compile(r"\d+")
"""What counts on within a stage does not begin a new stage."""
PLAIN_EVERY_S = 10.0
"""Without a terminal progress is a plain line: when a stage begins, and within it no more often than this."""


class Screen:
    """The user's terminal, or what stands for it.

    Args:
        quiet: no progress.
        no_color: no colours.
        verbose: every line of progress stays.
        shared: the user's program prints to this terminal, too.
        budget_s: the time that the command has; None: no limit.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        no_color: bool = False,
        verbose: bool = False,
        shared: bool = False,
        budget_s: float | None = None,
    ) -> None:
        self.out = console(no_color=no_color)
        self.err = console(stderr=True, no_color=no_color)
        self._quiet = quiet
        self._verbose = verbose
        self._shared = shared
        self._budget_s = budget_s
        self._status: StatusLine | None = None
        self._start_s = monotonic()
        self._last_s = -PLAIN_EVERY_S
        self._stage = ""
        self._theirs = False
        self._details: tuple[str, ...] = ()

    def show(self, what: RenderableType) -> None:
        """Print a result, without blanks at the ends of its lines."""
        self.done()
        with self.out.capture() as captured:
            self.out.print(what, crop=False)  # a command that is longer than the screen stays whole
        text = obeyed_by_none("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        self.out.file.write(text)
        self.out.file.flush()

    def note(self, text: str) -> None:
        """Print a line that stays, on standard error."""
        if self._quiet:
            return
        if self._status is not None:
            self._status.pause()
        self._line(Text(shown(text)))

    def warn(self, text: str) -> None:
        """Print a line that stays and is not overlooked, on standard error."""
        if not self._quiet:
            self.alert(text)

    def alert(self, text: str) -> None:
        """Print what has to be known also where no progress is wanted: what the user's files are not kept from."""
        if self._status is not None:
            self._status.pause()
        self._line(Text(shown(text), style="bold yellow"))

    def their_output(self, title: str) -> None:
        """Say that what comes next is printed by the user's program."""
        if not self._quiet:
            self._rule(title)
        self._theirs = True

    def progress(self, text: str) -> None:
        """Show what is going on: one line that changes, on a terminal; now and then a line, elsewhere."""
        if self._quiet:
            return
        if self._verbose:
            self.note(stamped(text, monotonic() - self._start_s, self._budget_s))
        elif self.err.is_terminal and not self.err.is_dumb_terminal:
            if self._status is None:
                self._status = StatusLine(
                    sys.stderr,
                    reserved=self._shared,
                    color=not self.err.no_color,
                    start_s=self._start_s,
                    budget_s=self._budget_s,
                    clock=monotonic,
                )
                self._status.detail(self._details)
            self._status.say(shown(text))
        else:
            self._plain(text)

    def detail(self, lines: Sequence[str]) -> None:
        """Show these under the progress from now on: below its line on a terminal, after it elsewhere."""
        self._details = tuple(shown(line) for line in lines)
        if self._status is not None:
            self._status.detail(self._details)

    def done(self) -> None:
        """Take the progress line away, and end the part that belongs to the program's output."""
        if self._status is not None:
            self._status.close()
            self._status = None
        if self._theirs:
            self._theirs = False
            if not self._quiet:
                self._rule("")

    def _plain(self, text: str) -> None:
        now_s = monotonic()
        stage = _NUMBERS.sub("", text.partition(":")[0])
        if stage != self._stage or now_s - self._last_s >= PLAIN_EVERY_S:
            self._last_s, self._stage = now_s, stage
            line = stamped(shown(text), now_s - self._start_s, self._budget_s)
            self._line(Text("\n  ".join([line, *self._details])))

    def _line(self, text: Text) -> None:
        """Print text that is wrapped where there is a width to wrap it at."""
        if wraps(self.err):
            lines = text.wrap(self.err, self.err.width)
            text = Text(obeyed_by_none("\n".join(line.plain.rstrip() for line in lines)), style=text.style)
        with contextlib.suppress(OSError):  # a full disk: what is told is lost, what is measured is not
            self.err.print(text, soft_wrap=True)

    def _rule(self, title: str) -> None:
        width = min(WIDTH, self.err.width) if wraps(self.err) else WIDTH
        with contextlib.suppress(OSError):
            self.err.print(Rule(Text(shown(title)), characters="-", style="dim", align="left"), width=width)
