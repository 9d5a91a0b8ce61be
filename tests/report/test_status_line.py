"""The status line and a program's own output on one terminal, seen through a terminal emulator."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import threading
from collections.abc import Iterator
from typing import TextIO

import pyte
import pytest

from hotloop.report.terminal.status_line import StatusLine, fresh_line, stamped

ROWS, COLUMNS = 10, 40


class Terminal:
    """A terminal of ten rows, what is written to it, and what it shows."""

    def __init__(self) -> None:
        self._parent, child = os.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.file: TextIO = os.fdopen(child, "w", buffering=1)
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def resize(self, rows: int) -> None:
        """Give it so many rows."""
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
        self._screen.resize(rows, COLUMNS)

    def prints(self, text: str) -> None:
        """What the user's program writes."""
        os.write(self.file.fileno(), text.encode())

    def shows(self) -> list[str]:
        """The rows, without blanks at their ends."""
        os.set_blocking(self._parent, False)
        try:
            while data := os.read(self._parent, 65536):
                self._stream.feed(data)
        except BlockingIOError:
            pass
        return [row.rstrip() for row in self._screen.display]

    def close(self) -> None:
        """Close both ends."""
        self.file.close()
        os.close(self._parent)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """A terminal with a shell's prompt above."""
    one = Terminal()
    one.prints("$ hotloop observe train.py\r\n")
    yield one
    one.close()


def _status(terminal: Terminal, *, reserved: bool = True) -> StatusLine:
    return StatusLine(terminal.file, reserved=reserved, color=False, start_s=0.0, clock=lambda: 65.0)


def test_it_stands_in_the_last_row_and_the_program_goes_on_where_it_was(terminal: Terminal) -> None:
    terminal.prints("epoch 1: 10%")
    status = _status(terminal)
    status.say("measuring")
    terminal.prints("\repoch 1: 20%")
    status.say("still measuring")
    terminal.prints("\repoch 1: 30%")
    rows = terminal.shows()
    assert rows[1] == "epoch 1: 30%"
    assert rows[-1] == "hotloop 1:05  still measuring"
    status.close()


def test_a_question_and_its_answer_are_left_alone(terminal: Terminal) -> None:
    status = _status(terminal)
    status.say("waiting")
    terminal.prints("name? ")
    for _ in range(3):
        status.draw()
    terminal.prints("joe\r\n")
    assert terminal.shows()[1] == "name? joe"
    status.close()


def test_output_scrolls_above_it(terminal: Terminal) -> None:
    status = _status(terminal)
    status.say("measuring")
    for step in range(30):
        terminal.prints(f"step {step}\r\n")
        status.draw()
    rows = terminal.shows()
    assert rows[: ROWS - 2] == [f"step {step}" for step in range(30 - (ROWS - 2), 30)]
    assert rows[-1] == "hotloop 1:05  measuring"
    status.close()


def test_afterwards_the_terminal_is_whole_and_what_follows_has_lines_of_its_own(terminal: Terminal) -> None:
    status = _status(terminal)
    status.say("measuring")
    terminal.prints("".join(f"step {step}\r\n" for step in range(30)) + "half a line")
    status.close()
    terminal.prints("the result\r\n" * 2)
    rows = terminal.shows()
    assert rows[-4:] == ["half a line", "the result", "the result", ""]
    assert not any("hotloop 1:05" in row for row in rows)


def test_a_message_takes_its_place_and_it_comes_back(terminal: Terminal) -> None:
    status = _status(terminal, reserved=False)
    status.say("trying compile")
    status.pause()
    terminal.prints("hotloop: a message\r\n")
    status.say("trying channels_last")
    assert terminal.shows()[1:3] == ["hotloop: a message", "hotloop 1:05  trying channels_last"]
    status.close()
    assert terminal.shows()[2] == ""


@pytest.fixture
def tall(terminal: Terminal) -> Terminal:
    """A terminal with room for details: of sixteen rows the status may have four."""
    terminal.resize(16)
    return terminal


def test_details_stand_under_it_and_output_scrolls_above_all_of_them(tall: Terminal) -> None:
    tall.prints("".join(f"line {number}\r\n" for number in range(20)))
    status = _status(tall)
    status.say("measuring")
    status.detail(["46% data", "CPU 80% busy"])
    for step in range(20):
        tall.prints(f"step {step}\r\n")
        status.draw()
    tall.prints("half a line")
    rows = tall.shows()
    assert rows[-3:] == ["hotloop 1:05  measuring", "  46% data", "  CPU 80% busy"]
    assert rows[-5:-3] == ["step 19", "half a line"]
    status.close()
    assert not any(row.startswith(("hotloop 1:05", "  46%")) for row in tall.shows())


def test_details_make_room_without_covering_what_was_printed(tall: Terminal) -> None:
    tall.prints("".join(f"line {number}\r\n" for number in range(20)) + "name? ")
    status = _status(tall)
    status.say("measuring")
    status.detail(["46% data", "CPU 80% busy"])
    tall.prints("joe")
    assert tall.shows()[-5:-3] == ["line 19", "name? joe"]
    status.close()


def test_details_of_a_terminal_of_our_own_go_away_with_it(tall: Terminal) -> None:
    status = _status(tall, reserved=False)
    status.say("trying compile")
    status.detail(["best so far 1.42x"])
    assert tall.shows()[1:3] == ["hotloop 1:05  trying compile", "  best so far 1.42x"]
    status.pause()
    tall.prints("hotloop: a message\r\n")
    status.say("trying channels_last")
    rows = tall.shows()
    assert rows[1:4] == [
        "hotloop: a message",
        "hotloop 1:05  trying channels_last",
        "  best so far 1.42x",
    ]
    status.close()
    assert tall.shows()[2:4] == ["", ""]


def test_a_line_that_is_too_long_says_that_it_goes_on(terminal: Terminal) -> None:
    status = _status(terminal)
    status.say("comparing side by side: channels_last, autocast_bf16")
    assert terminal.shows()[-1] == "hotloop 1:05  comparing side by side:…".replace(":…", ": …")[:COLUMNS]
    status.close()


def test_a_small_terminal_is_left_alone(terminal: Terminal) -> None:
    fcntl.ioctl(terminal.file, termios.TIOCSWINSZ, struct.pack("HHHH", 3, COLUMNS, 0, 0))
    status = _status(terminal)
    status.say("measuring")
    status.close()
    assert "hotloop 1:05" not in "".join(terminal.shows())


def test_its_thread_ends_with_it(terminal: Terminal) -> None:
    status = _status(terminal)
    status.say("measuring")
    status.close()
    assert all(thread.name != "hotloop-status" or not thread.is_alive() for thread in threading.enumerate())


def test_the_time_there_is_stands_beside_the_time_gone() -> None:
    assert stamped("trying", 75.0, 600.0) == "hotloop 1:15 of 10:00  trying"


def test_a_fresh_line_is_not_an_empty_one(terminal: Terminal) -> None:
    terminal.prints(fresh_line(COLUMNS) + "a\r\n")
    terminal.prints("b" + fresh_line(COLUMNS) + "c")
    assert terminal.shows()[1:4] == ["a", "b", "c"]
