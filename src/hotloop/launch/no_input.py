"""What a program finds on standard input that is given nothing to read."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess

NUM_READS = 256
"""So many reads end at once; a program that asks more often waits, and is ended for being late."""
_END_OF_FILE = b"\x04"


class NoInput:
    """Standard input without anything in it: a terminal where the user's is one, else the null device.

    Programs ask how wide the terminal is (`stty size`, `os.get_terminal_size`) and fail where there is none.

    Args:
        of: the user's standard input, a file descriptor.
    """

    def __init__(self, of: int = 0) -> None:
        self.given: int = subprocess.DEVNULL
        """For `subprocess.Popen`."""
        self._keyboard: int | None = None
        with contextlib.suppress(OSError, ImportError):
            if os.isatty(of):
                self._open(os.get_terminal_size(of))

    def _open(self, size: os.terminal_size) -> None:
        import fcntl
        import termios

        self._keyboard, self.given = os.openpty()
        fcntl.ioctl(self.given, termios.TIOCSWINSZ, struct.pack("HHHH", size.lines, size.columns, 0, 0))
        os.write(self._keyboard, _END_OF_FILE * NUM_READS)

    def was_given(self) -> None:
        """Close what only the program needs from now on."""
        if self._keyboard is not None and self.given >= 0:
            os.close(self.given)
            self.given = subprocess.DEVNULL

    def close(self) -> None:
        """Hang up."""
        self.was_given()
        if self._keyboard is not None:
            os.close(self._keyboard)
            self._keyboard = None
