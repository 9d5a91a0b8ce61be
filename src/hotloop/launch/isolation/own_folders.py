"""The folders in which a program writes, as far as can be told before it runs, and which overlays they need.

A user namespace of an ordinary user knows one user and one group. In an overlay, nothing that belongs to another user
or group can be copied up (`EOVERFLOW`), and that includes every folder above what is written: root's `/home/dept` is
enough. A folder with an overlay of its own is never copied up, so the chain above it does not matter.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_TEMPORARY = ("/tmp", "/var/tmp", "/run/lock", "/var/lock")


def project_folders(argv: Sequence[str], cwd: Path) -> list[str]:
    """Return the folders that a program works in, as far as its words tell, wherever links lead."""
    words = (word.split("=", 1)[-1] for word in argv[1:])
    named = (_existing(cwd / word) for word in words if word and "\0" not in word and len(word) < 4096)
    return list(dict.fromkeys(os.path.realpath(path) for path in (cwd, *named)))


def own_overlays(argv: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> list[str]:
    """Return the folders that need an overlay of their own, parents first: none for root, who knows everybody.

    Args:
        argv: the command.
        cwd: where it runs.
        environment: its variables; those that name a folder (`HOME`, `SCRATCH`, `HF_HOME`) say where it may write.
    """
    if os.getuid() == 0:
        return []
    named = [value for value in environment.values() if value.startswith("/") and os.path.isdir(value)]
    wanted = {*project_folders(argv, cwd), *named, *_TEMPORARY, tempfile.gettempdir()}
    real = {Path(os.path.realpath(path)) for path in wanted}
    folders = {folder for path in real for folder in (path, *path.parents) if os.path.isdir(folder)}
    return sorted(os.fspath(folder) for folder in folders if _needs_own(folder))


def is_known(status: os.stat_result) -> bool:
    """Whether a namespace of this user knows the owner and the group."""
    return status.st_uid == os.getuid() and status.st_gid == os.getgid()


def may_write(path: str | Path) -> bool:
    """Whether this user may change a file, or put files into a folder."""
    return os.access(path, os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK)


def _needs_own(folder: Path) -> bool:
    return may_write(folder) and (not is_known(folder.stat()) or not may_write(folder.parent))


def _existing(path: Path) -> Path:
    real = Path(os.path.realpath(path))
    return next(folder for folder in (real, *real.parents) if os.path.isdir(folder))
