"""The users and groups that a user namespace knows: this user's own, and those in `/etc/subuid` and `/etc/subgid`.

The kernel lets a process map its own two numbers alone; supplementary groups cannot be mapped. `newuidmap` and
`newgidmap` may map what the administrator lists for this user: a team's group, too, where `/etc/subgid` says so
(`alice:5000:1`). Every number stands for itself inside.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

_LISTS = {"newuidmap": Path("/etc/subuid"), "newgidmap": Path("/etc/subgid")}


def can_map_more() -> bool:
    """Whether more than this user's own numbers can be mapped."""
    return any(_listed(path) for path in _LISTS.values()) and all(shutil.which(tool) for tool in _LISTS)


def map_own(enter_namespace: Callable[[], None]) -> None:
    """Enter a new user namespace and map this user and group alone."""
    uid, gid = os.geteuid(), os.getegid()
    enter_namespace()
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def map_listed(enter_namespace: Callable[[], None]) -> None:
    """Enter a new user namespace and have a process outside it map all that is listed.

    Raises:
        OSError: the tools refuse.
    """
    own = {"newuidmap": os.geteuid(), "newgidmap": os.getegid()}
    target, (read, write) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(write)
        os.read(read, 1)
        failed = [tool for tool in _LISTS if _mapped(tool, target, own[tool])]
        os._exit(1 if failed else 0)
    os.close(read)
    try:
        enter_namespace()
    finally:
        os.close(write)
        _, status = os.waitpid(helper, 0)
    if status:
        raise OSError("newuidmap or newgidmap refused to map what /etc/subuid and /etc/subgid list")


def _mapped(tool: str, target: int, own: int) -> int:
    ranges = [
        (own, 1),
        *((first, num) for first, num in _listed(_LISTS[tool]) if not first <= own < first + num),
    ]
    words = [str(number) for first, num in ranges for number in (first, first, num)]
    return subprocess.run([tool, str(target), *words], check=False, capture_output=True).returncode


def _listed(path: Path) -> list[tuple[int, int]]:
    """Return first number and length of each range that is listed for this user."""
    try:
        names = {pwd.getpwuid(os.getuid()).pw_name, str(os.getuid())}
        rows = [line.split(":") for line in path.read_text().splitlines()]
    except (OSError, KeyError):
        return []
    return [
        (int(row[1]), int(row[2]))
        for row in rows
        if len(row) == 3 and row[0] in names and row[1].isdigit() and row[2].isdigit() and int(row[2])
    ]
