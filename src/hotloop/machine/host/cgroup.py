"""What the control group allows this process: cores, memory, and how long it was held back."""

from collections.abc import Iterator
from pathlib import Path

_UNLIMITED_BYTES = 1 << 60
"""Version 1 writes 'no limit' as a number just below 2**63, rounded down to a page."""


def quota_cores(root: Path = Path("/")) -> float | None:
    """Return the tightest CPU quota on this process in cores, None where there is none."""
    quotas = [_ratio(_read(folder / "cpu.max")) for folder in _folders(root, "")]
    quotas += [
        _ratio(f"{_read(folder / 'cpu.cfs_quota_us')} {_read(folder / 'cpu.cfs_period_us')}")
        for folder in _folders(root, "cpu")
    ]
    return min((quota for quota in quotas if quota is not None), default=None)


def memory_limit_bytes(root: Path = Path("/")) -> int | None:
    """Return the tightest memory limit on this process, None where there is none."""
    texts = [_read(folder / "memory.max") for folder in _folders(root, "")]
    texts += [_read(folder / "memory.limit_in_bytes") for folder in _folders(root, "memory")]
    limits = [int(text) for text in texts if text.isdigit()]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def throttled_s(root: Path = Path("/")) -> float | None:
    """Return how long the quota has held this process's group back, None where it is not counted."""
    for folder in (*_folders(root, ""), *_folders(root, "cpu")):
        for line in _read(folder / "cpu.stat").splitlines():
            key, _, value = line.partition(" ")
            if key == "throttled_usec":
                return int(value) / 1e6
            if key == "throttled_time":
                return int(value) / 1e9
    return None


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the group's folder and those above it; version 2 where `controller` is empty.

    Inside a container the path in /proc may not exist below the mount: then the mount itself is the group.
    """
    mounts = [root / "sys/fs/cgroup" / controller] if controller else []
    if not controller:
        mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
    path = _group(root, controller)
    for mount in mounts:
        folder = mount / path.lstrip("/")
        while folder != mount and mount in folder.parents:
            yield folder
            folder = folder.parent
        yield mount


def _group(root: Path, controller: str) -> str:
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == controller or (controller and controller in controllers.split(",")):
            return path
    return ""


def _ratio(text: str) -> float | None:
    numbers = text.split()
    if len(numbers) != 2 or not numbers[0].isdigit() or not numbers[1].isdigit():
        return None
    return int(numbers[0]) / int(numbers[1])


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
