"""The memory of a whole process tree."""

from __future__ import annotations

import msgspec

PROGRAM, WORKERS = "program", "loader_workers"
"""Roles of processes: the workers of DataLoaders, and all others of the command."""


class RoleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Resident memory on the host of the processes with one role.

    Attributes:
        held_bytes: of all of them together, at the moment of the tree's peak.
        largest_bytes: of the largest of them.
        num: how many.
    """

    held_bytes: int
    largest_bytes: int
    num: int


class TreeMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Resident memory on the host of several processes together."""

    peak_bytes: int
    """In the largest of the samples that were taken."""
    method: str
    """`PSS`: shared pages are divided among those that map them; `USS`: pages that a process shares are left out."""
    num_processes: int
    roles: dict[str, RoleMemory] = {}
    """The same by role of the processes; empty: not told apart."""
