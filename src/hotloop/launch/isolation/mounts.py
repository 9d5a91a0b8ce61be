"""The mounts of this process, and what each may be: read through to, left as it is, or not covered at all."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

_MACHINERY = {
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "mqueue",
    "hugetlbfs",
    "cgroup",
    "cgroup2",
    "bpf",
    "autofs",
}
_MACHINERY |= {
    "binfmt_misc",
    "configfs",
    "debugfs",
    "efivarfs",
    "fusectl",
    "nfsd",
    "nsfs",
    "pstore",
    "resctrl",
}
_MACHINERY |= {"rpc_pipefs", "securityfs", "selinuxfs", "tracefs"}
"""Kinds that hold no files of a user's: devices, processes, settings of the kernel."""


class Mount(NamedTuple):
    """One mount that can be reached.

    Attributes:
        point: where.
        kind: the file system.
        read_only: nothing can be written there anyway.
    """

    point: str
    kind: str
    read_only: bool

    @property
    def machinery(self) -> bool:
        """Whether it holds devices, processes or settings, which are used as they are."""
        return self.kind in _MACHINERY or self.point == "/dev"


def visible_mounts() -> list[Mount]:
    """Return the mounts that paths lead to, parents before children; what lies under another mount is left out."""
    found: dict[str, Mount] = {}
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        head, _, tail = line.partition(" - ")
        number, _, _, _, point, options = head.split()[:6]
        kind, _, *more = tail.split()
        point = re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), point)
        own = {*options.split(","), *(more[0].split(",") if more else ())}
        if kind == "autofs" or _mount_id(point) == number:
            found[point] = Mount(point, kind, "ro" in own)
    return [found[point] for point in sorted(found)]


def _mount_id(point: str) -> str | None:
    """Return the id of the mount that a path leads to; None: it cannot be reached."""
    try:
        descriptor = os.open(point, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    finally:
        os.close(descriptor)
    return next((line.split()[1] for line in lines if line.startswith("mnt_id")), None)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
