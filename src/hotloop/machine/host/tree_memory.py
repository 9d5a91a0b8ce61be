"""The memory of a whole process tree, in which what processes share counts once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hotloop.model.tree_memory import TreeMemory

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def tree_memory(pids: Iterable[int], proc: Path = Path("/proc")) -> TreeMemory | None:
    """Return what the processes that are alive hold together; None: there is none, or no /proc.

    Where the proportional set size of one is not told, all are counted without what they share: two ways of counting do
    not add up.
    """
    alive = {pid: own for pid in pids if (own := own_bytes(pid, proc)) is not None}
    if not alive:
        return None
    shares = [_proportional_bytes(pid, proc) for pid in alive]
    known = [share for share in shares if share is not None]
    if len(known) == len(alive):
        return TreeMemory(peak_bytes=sum(known), method="PSS", num_processes=len(alive))
    return TreeMemory(peak_bytes=sum(alive.values()), method="USS", num_processes=len(alive))


def own_bytes(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return the resident memory that a process shares with none (proc(5), statm); None: it has gone."""
    try:
        fields = (proc / str(pid) / "statm").read_text().split()
    except OSError:
        return None
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


def _proportional_bytes(pid: int, proc: Path) -> int | None:
    """Return the proportional set size (proc(5), smaps_rollup: Linux 4.14); None: not told, or not to us."""
    try:
        with open(f"{proc}/{pid}/smaps_rollup", encoding="ascii") as file:
            line = next((line for line in file if line.startswith("Pss:")), None)
    except OSError:
        return None
    return int(line.split()[1]) << 10 if line is not None else None
