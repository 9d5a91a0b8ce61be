"""A count that this process shares with the loader workers it forks."""

from __future__ import annotations

import mmap
import struct

_NUMBER = struct.Struct("q")


class SharedCount:
    """A number; two processes that add at the same moment may count once, which a proof of effect can bear."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NUMBER.size)

    def add(self) -> None:
        """Count one more."""
        _NUMBER.pack_into(self._memory, 0, self.value + 1)

    @property
    def value(self) -> int:
        """What was counted."""
        return int(_NUMBER.unpack_from(self._memory, 0)[0])
