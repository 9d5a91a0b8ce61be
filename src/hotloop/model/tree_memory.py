"""The memory of a whole process tree."""

from __future__ import annotations

import msgspec


class TreeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Resident memory on the host of several processes together."""

    peak_bytes: int
    """In the largest of the samples that were taken."""
    method: str
    """`PSS`: shared pages are divided among those that map them; `USS`: pages that a process shares are left out."""
    num_processes: int
