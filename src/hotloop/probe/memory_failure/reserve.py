"""Memory that is put aside, so that there is some to look around with when there is no more."""

from __future__ import annotations

RESERVE_BYTES = 64 << 20
"""A list of all objects takes 8 bytes each, a row of the account half a kilobyte for each tensor."""


class Reserve:
    """Address space alone: the system gives no page of it, since nothing is written to it."""

    def __init__(self) -> None:
        self._held: bytearray | None = bytearray(RESERVE_BYTES)

    def give_back(self) -> None:
        """Let the process have it."""
        self._held = None
