"""How much memory there is room for: on the host the tightest of its limits, on a device by its driver."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

_CGROUP = Path("/sys/fs/cgroup")
_PROCESS_GROUPS = Path("/proc/self/cgroup")


def host_room() -> dict[str, Any]:
    """Return the tightest limit of this process: its name, its bytes, and what of them is free; None: unknown."""
    status = _numbers("/proc/self/status")
    known = [_address_space(status), _container(), _machine()]
    rooms = [room for room in known if room is not None]
    tightest = min(rooms, key=lambda room: room["free_bytes"], default=None)
    found = tightest or {"limit": None, "limit_bytes": None, "free_bytes": None}
    return {**found, "resident_bytes": status.get("VmRSS"), "peak_resident_bytes": status.get("VmHWM")}


def shared_memory_room() -> dict[str, Any]:
    """Return the limit of what processes share (`/dev/shm`), as `host_room` does; empty: there is none."""
    try:
        found = os.statvfs("/dev/shm")
    except (OSError, AttributeError):  # not on this system
        return {}
    size = found.f_frsize
    return _room("what processes may share (/dev/shm)", found.f_blocks * size, found.f_bavail * size)


def kernel_kills() -> int | None:
    """Return how many processes the kernel has killed for want of memory; None: it does not tell.

    Of this process's group, where that counts them; else of the machine.
    """
    for folder, most, _ in _groups(_PROCESS_GROUPS, _CGROUP):
        counts = folder / ("memory.events" if most == "memory.max" else "memory.oom_control")
        found = _numbers(str(counts), scale=1).get("oom_kill")
        if found is not None:
            return found
    return _numbers("/proc/vmstat", scale=1).get("oom_kill")


def device_room(index: int | None = None) -> dict[str, Any] | None:
    """Return what a CUDA device has, what is free, and what torch's allocator holds; None: it is not in use."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    index = torch.cuda.current_device() if index is None else index
    free, total = torch.cuda.mem_get_info(index)
    return {
        "limit": torch.cuda.get_device_properties(index).name,
        "limit_bytes": total,
        "free_bytes": free,
        "allocated_bytes": torch.cuda.memory_allocated(index),
        "reserved_bytes": torch.cuda.memory_reserved(index),
        "index": index,
    }


def _address_space(status: dict[str, int]) -> dict[str, Any] | None:
    try:
        import resource
    except ImportError:  # not on this system
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or "VmSize" not in status:
        return None
    return _room("the limit of this process's address space (ulimit -v)", limit, limit - status["VmSize"])


def _container() -> dict[str, Any] | None:
    """Return the tightest of the limits on the way from this process's group up to the root."""
    rooms = []
    for folder, most, used in _groups(_PROCESS_GROUPS, _CGROUP):
        limit, now = _number(folder / most), _number(folder / used)
        if limit is not None and now is not None and limit < 1 << 60:
            # What the kernel keeps of files is given back before anybody is killed.
            kept = _numbers(str(folder / "memory.stat"), scale=1).get("inactive_file", 0)
            rooms.append(_room("the container's limit (cgroup)", limit, limit - now + kept))
    return min(rooms, key=lambda room: int(room["free_bytes"]), default=None)


def _groups(told: Path, mounted: Path) -> list[tuple[Path, str, str]]:
    """Return the folders of this process's group and of those above it: a batch system limits the job, not the task."""
    rows: list[tuple[Path, str, str]] = []
    try:
        lines = told.read_text().splitlines()
    except OSError:
        return rows
    for line in lines:
        _, controllers, path = line.split(":", 2)
        below = PurePosixPath(path.lstrip("/"))
        above = (below, *below.parents)
        if not controllers:
            rows += [(mounted / each, "memory.max", "memory.current") for each in above]
        elif "memory" in controllers.split(","):
            v1 = mounted / "memory"
            rows += [(v1 / each, "memory.limit_in_bytes", "memory.usage_in_bytes") for each in above]
    return rows


def _machine() -> dict[str, Any] | None:
    known = _numbers("/proc/meminfo")
    if "MemTotal" not in known or "MemAvailable" not in known:
        return None
    return _room("the machine's memory", known["MemTotal"], known["MemAvailable"])


def _room(name: str, limit: int, free: int) -> dict[str, Any]:
    return {"limit": name, "limit_bytes": limit, "free_bytes": max(0, free)}


def _numbers(path: str, scale: int = 1024) -> dict[str, int]:
    try:
        text = Path(path).read_text()
    except OSError:
        return {}
    return {found[1]: int(found[2]) * scale for found in re.finditer(r"^(\w+):?\s+(\d+)", text, re.MULTILINE)}


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
