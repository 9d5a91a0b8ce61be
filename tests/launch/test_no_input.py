"""What stands on standard input of a program that is given nothing to read."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import pytest

from hotloop.launch.no_input import NoInput


def test_without_a_terminal_it_is_the_null_device() -> None:
    read, write = os.pipe()
    try:
        assert NoInput(read).given == subprocess.DEVNULL
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_at_a_terminal_it_is_one_of_the_same_size_that_has_ended() -> None:
    import fcntl
    import termios

    keyboard, terminal = os.openpty()
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 97, 0, 0))
        nothing = NoInput(terminal)
        assert os.get_terminal_size(nothing.given) == os.terminal_size((97, 33))
        assert [os.read(nothing.given, 100) for _ in range(3)] == [b""] * 3
        nothing.close()
        nothing.close()
        assert nothing.given == subprocess.DEVNULL
    finally:
        os.close(keyboard)
        os.close(terminal)
