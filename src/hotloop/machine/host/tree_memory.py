"""The memory of a whole process tree, in which what processes share counts once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from hotloop.model.tree_memory import PROGRAM, WORKERS, RoleMemory, TreeMemory

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
WORKER_NAME = "pt_data_worker"
"""The name that torch gives the process of a DataLoader's worker (2.6 and newer)."""


def tree_memory(pids: Iterable[int], proc: Path = Path("/proc")) -> TreeMemory | None:
    """Return what the processes that are alive hold together; None: there is none, or no /proc.

    Where the proportional set size of one is not told, all are counted without what they share: two ways of counting do
    not add up.
    """
    alive = {pid: own for pid in pids if (own := own_bytes(pid, proc)) is not None}
    if not alive:
        return None
    shares = {pid: _proportional_bytes(pid, proc) for pid in alive}
    known = {pid: share for pid, share in shares.items() if share is not None}
    complete = len(known) == len(alive)
    held = known if complete else alive
    return TreeMemory(
        peak_bytes=sum(held.values()),
        method="PSS" if complete else "USS",
        num_processes=len(held),
        roles=_by_role(held, proc),
    )


def own_bytes(pid: int, proc: Path = Path("/proc")) -> int | None:
    """Return the resident memory that a process shares with none (proc(5), statm); None: it has gone."""
    try:
        fields = (proc / str(pid) / "statm").read_text().split()
    except OSError:
        return None
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


def is_worker(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process is a DataLoader's worker."""
    try:
        return (proc / str(pid) / "comm").read_text().strip() == WORKER_NAME
    except OSError:
        return False


def _by_role(held: Mapping[int, int], proc: Path) -> dict[str, RoleMemory]:
    sizes: dict[str, list[int]] = {}
    for pid, size in held.items():
        sizes.setdefault(WORKERS if is_worker(pid, proc) else PROGRAM, []).append(size)
    return {
        role: RoleMemory(held_bytes=sum(known), largest_bytes=max(known), num=len(known))
        for role, known in sizes.items()
    }


def _proportional_bytes(pid: int, proc: Path) -> int | None:
    """Return the proportional set size (proc(5), smaps_rollup: Linux 4.14); None: not told, or not to us."""
    try:
        with open(f"{proc}/{pid}/smaps_rollup", encoding="ascii") as file:
            line = next((line for line in file if line.startswith("Pss:")), None)
    except OSError:
        return None
    return int(line.split()[1]) << 10 if line is not None else None
