"""How much memory kept samples may take."""

from __future__ import annotations

import os
from pathlib import Path

from hotloop.machine.host.cgroup import memory_limit_bytes


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
