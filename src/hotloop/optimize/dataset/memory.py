"""How much memory kept samples may take."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

from hotloop.machine.host.cgroup import memory_limit_bytes

_M_MMAP_THRESHOLD = -3
LARGE_BYTES = 1 << 20


@functools.cache
def give_large_blocks_back() -> None:
    """Have glibc give large blocks back to the system when they are freed, in this process, as a fresh one does.

    It stops doing so for sizes that it has seen freed, and the process that keeps a data set has read, and freed, all
    of it: a loader worker that is forked from it then grew by every batch that it made, to the size of the data set.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # it is glibc's
        mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


def allowed_bytes(share: float) -> int | None:
    """Return what this process may keep: a share of the memory that is free now, divided among the ranks of this host.

    None: the system does not tell what is free.
    """
    free = _free_bytes()
    if free is None:
        return None
    limit = memory_limit_bytes()
    available = free if limit is None else min(free, max(0, limit - _resident_bytes()))
    return int(share * available / max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1)))


def _free_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
