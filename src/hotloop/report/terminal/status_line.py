"""Lines that say what goes on, in a place that the program's own output never reaches.

A program that shares the terminal prints when it likes, draws progress bars and asks questions. The status therefore
stands in the last rows, outside the scrolling region (DECSTBM, as apt does it): the program scrolls above, and the
cursor is where the program left it after each of our writes. Every write is one system call, so that the program's
own cannot come between.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TextIO

TICK_S = 1.0
MIN_ROWS = 5
"""A smaller terminal keeps all of its rows."""
MAX_SHARE = 4
"""The status takes at most this fraction of the rows: of 24 six."""
MIN_COLUMNS = 20
_SAVE, _RESTORE, _CLEAR, _INDEX = "\x1b7", "\x1b8", "\x1b[2K", "\x1bD"
_REVERSE, _PLAIN = "\x1b[7m", "\x1b[0m"
"""Reversed, it is readable on light and on dark terminals."""


class StatusLine:
    """A line in the terminal's last row, and details under it, redrawn by the clock until it is closed.

    Args:
        stream: the terminal.
        reserved: whether others print to this terminal, so that the row has to be kept from them.
        color: whether the line may be set apart from text.
        start_s: when the time that is shown began.
        budget_s: the time there is in all; None: no limit.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        reserved: bool,
        color: bool,
        start_s: float,
        budget_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._reserved = reserved
        self._color = color
        self._budget_s = budget_s
        self._clock = clock
        self._start_s = start_s
        self._text = ""
        self._details: tuple[str, ...] = ()
        self._drawn_rows = 0
        """Rows of the terminal when the region was last set; 0: nothing is drawn."""
        self._kept = 0
        """Rows that the status has taken, from the last one up; it gives none back while it is drawn."""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True, name="hotloop-status")
        self._ticker.start()

    def say(self, text: str) -> None:
        """Show this from now on."""
        self._text = text
        self.draw()

    def detail(self, lines: Sequence[str]) -> None:
        """Show these under it from now on."""
        self._details = tuple(lines)
        self.draw()

    def draw(self) -> None:
        """Draw it as it is now; nothing where the terminal is another job's or too small."""
        with self._lock:
            if self._closed.is_set() or not _in_foreground(self._stream):
                return
            columns, rows = _size(self._stream)
            if rows < MIN_ROWS or columns < MIN_COLUMNS:
                return
            lines = self._lines(columns, rows)
            self._write(self._in_last_rows(lines, rows, columns) if self._reserved else _in_place(lines))
            self._drawn_rows, self._kept = rows, len(lines)

    def pause(self) -> None:
        """Take the line away until it is drawn again, so that something else can be printed."""
        with self._lock:
            self._take_away()

    def close(self) -> None:
        """Take the line away for good; the cursor is at the start of a line."""
        with self._lock:
            self._closed.set()
            drawn = self._drawn_rows
            self._take_away()
            if self._reserved and drawn:
                self._write(fresh_line(_size(self._stream)[0]))
        self._ticker.join()

    def _tick(self) -> None:
        while not self._closed.wait(TICK_S):
            if self._text:
                self.draw()

    def _lines(self, columns: int, rows: int) -> list[str]:
        first = stamped(self._text, self._clock() - self._start_s, self._budget_s)
        lines = [first, *(f"  {line}" for line in self._details)][: max(1, rows // MAX_SHARE)]
        lines += [""] * (self._kept - len(lines))
        return [_cut(line, columns - 1) for line in lines]

    def _in_last_rows(self, lines: Sequence[str], rows: int, columns: int) -> str:
        num = len(lines)
        region = f"\x1b[1;{rows - num}r"
        new = num - self._kept if self._drawn_rows == rows else num
        # Rows further down first, by indexes, which keep the column: the cursor may be where the status will stand.
        begin = f"{new * _INDEX}\x1b[{new}A" if new else ""
        shown = [f"{_REVERSE}{line.ljust(columns - 1)}{_PLAIN}" if self._color else line for line in lines]
        placed = "".join(f"\x1b[{rows - num + 1 + at};1H{_CLEAR}{line}" for at, line in enumerate(shown))
        return f"{begin}{_SAVE}{region}{placed}{_RESTORE}"

    def _take_away(self) -> None:
        rows, self._drawn_rows = self._drawn_rows, 0
        num, self._kept = self._kept, 0
        if not rows:
            return
        if not self._reserved:
            self._write(_in_place([""] * num))
            return
        cleared = "".join(f"\x1b[{rows - at};1H{_CLEAR}" for at in range(num))
        self._write(f"{_SAVE}\x1b[r{cleared}{_RESTORE}")

    def _write(self, text: str) -> None:
        try:
            os.write(self._stream.fileno(), text.encode(self._stream.encoding or "utf-8", "replace"))
        except OSError:  # the terminal has been closed
            self._closed.set()


def _in_place(lines: Sequence[str]) -> str:
    """Return what writes lines from the cursor's row on and goes back to where it began."""
    written = "\n".join(f"\r{_CLEAR}{line}" for line in lines)
    return f"{written}\r" + (f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else "")


def _cut(line: str, columns: int) -> str:
    return line if len(line) <= columns else f"{line[: columns - 2].rstrip()} …"


def stamped(text: str, elapsed_s: float, budget_s: float | None) -> str:
    """Return the line with the time gone, and the time there is where that is known."""
    limit = f" of {_minutes(budget_s)}" if budget_s is not None else ""
    return f"hotloop {_minutes(elapsed_s)}{limit}  {text}"


def fresh_line(columns: int) -> str:
    """Return what moves the cursor to the start of an empty line, wherever it is.

    As many blanks as a line is wide wrap only where the line holds something already (zsh's way).
    """
    return f"{' ' * columns}\r\x1b[K"


def _minutes(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(stream.fileno())
    except OSError:
        return 0, 0
    return size.columns, size.lines


def _in_foreground(stream: TextIO) -> bool:
    """Whether this is the job that the terminal belongs to; the screen of a different job is left alone."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:
        return True  # not the controlling terminal, as under some editors: nobody else's either
