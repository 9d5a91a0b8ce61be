"""Read a file that somebody else named: regular, and not larger than it may be."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class IrregularFileError(OSError):
    """Raised with the reason, as a clause: "it is no regular file"."""


def regular_bytes(path: str | Path, most: int) -> bytes:
    """Return a file's content.

    Args:
        path: of the file.
        most: bytes that it may have.

    Raises:
        IrregularFileError: it is a pipe, a device or a folder, or larger than that.
        OSError: it cannot be read.
    """
    # Without blocking: a pipe of that name may have no writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise IrregularFileError("it is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise IrregularFileError(f"it is larger than {most >> 20} MiB")
    return content
