"""Memory that is put aside, so that there is some to look around with when there is no more."""

from __future__ import annotations

import contextlib
import mmap

RESERVE_BYTES = 64 << 20
"""A list of all objects takes 8 bytes each, a row of the account half a kilobyte for each tensor."""


class Reserve:
    """Address space alone: the system gives no page of it, since nothing is written to it."""

    def __init__(self) -> None:
        self._held: mmap.mmap | None = None
        self.take()

    def take(self) -> None:
        """Put it aside, where there is so much."""
        if self._held is None:
            with contextlib.suppress(OSError, MemoryError):
                self._held = mmap.mmap(-1, RESERVE_BYTES)

    def give_back(self) -> None:
        """Let the process have it."""
        if self._held is not None:
            self._held.close()
            self._held = None
