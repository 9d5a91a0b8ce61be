"""The stacks of all threads, as `faulthandler` writes them.

`sys._current_frames()` would be the natural way, and it crashes programs: in Python 3.11 a frame that is being cleared
is still the current one, torch gives the interpreter's lock up while a tensor among its locals is freed, and a frame
object made of it at that moment outlives the memory that it points to. faulthandler makes no objects.
"""

from __future__ import annotations

import faulthandler
import os
import re
import tempfile
from collections.abc import Iterator

from hotloop.probe.instruments.frames import Line

_THREAD = re.compile(rb"(?:Current thread|Thread) 0x([0-9a-f]+)")
_FRAME = re.compile(rb'  File "(.*)", line (\d+) in (.*)')
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})")


class Stacks:
    """A file in memory for them; faulthandler keeps the innermost hundred frames of a stack."""

    def __init__(self) -> None:
        self._descriptor = _file_in_memory()

    def look(self) -> Iterator[tuple[int, bytes]]:
        """Yield each thread's identity and its stack, to be taken apart by `lines_of`.

        A thread that has not begun, or has ended, its Python code has none and is left out.
        """
        descriptor = self._descriptor
        os.lseek(descriptor, 0, os.SEEK_SET)
        faulthandler.dump_traceback(descriptor, all_threads=True)
        raw = os.pread(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR), 0)
        for block in raw.split(b"\n\n"):
            head, _, stack = block.partition(b"\n")
            found = _THREAD.match(head)
            if found and _FRAME.match(stack):
                yield int(found[1], 16), stack

    def close(self) -> None:
        """Give the file back."""
        os.close(self._descriptor)


def lines_of(stack: bytes) -> list[Line]:
    """Return the lines of a stack, the innermost first."""
    return [
        Line(_text(found[1]), int(found[2]), _text(found[3]))
        for found in map(_FRAME.match, stack.split(b"\n"))
        if found
    ]


def _file_in_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("hotloop")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _text(raw: bytes) -> str:
    """Return a name; what is not ASCII was written as an escape."""
    return _ESCAPED.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), raw.decode("ascii"))
