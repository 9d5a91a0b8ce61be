"""Errors as the system raises them, for calls that the write guard answers itself."""

from __future__ import annotations

import os


def system_error(number: int, path: str) -> OSError:
    """Return what the system would have raised.

    Args:
        number: an `errno`.
        path: as the program named it.
    """
    return OSError(number, os.strerror(number), path)
