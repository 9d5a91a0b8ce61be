"""Which file system a folder is on."""

from pathlib import Path

import msgspec


class Mount(msgspec.Struct, frozen=True):
    """A mounted file system."""

    point: str
    kind: str


def mount_of(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> Mount:
    """Return the file system that a folder is on: the longest mount point above it."""
    resolved = folder.resolve()
    best = Mount("/", "unknown")
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return best
    for line in lines:
        fields = line.split()
        point = fields[1].replace("\\040", " ")
        above = resolved == Path(point) or Path(point) in resolved.parents
        if above and len(point) >= len(best.point):
            best = Mount(point, fields[2])
    return best
