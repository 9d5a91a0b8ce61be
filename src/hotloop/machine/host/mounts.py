"""Which file system a folder is on."""

from pathlib import Path

import msgspec


class Mount(msgspec.Struct, frozen=True):
    """A mounted file system.

    Attributes:
        point: where it is mounted.
        kind: `ext4`, `nfs4`, `tmpfs`, ...
        device: what is mounted: a disk, or `server:/export`; "": not told.
    """

    point: str
    kind: str
    device: str = ""

    @property
    def is_network(self) -> bool:
        """Return whether its files come over a network."""
        return self.kind in _NETWORK or self.kind.startswith("fuse.") or ":/" in self.device


_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "glusterfs",
        "afs",
        "9p",
        "wekafs",
    }
)
"""Of those in Linux and on the large clusters; what is mounted through FUSE (sshfs, s3fs, gcsfuse) counts too."""


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
            best = Mount(point, fields[2], fields[0])
    return best
