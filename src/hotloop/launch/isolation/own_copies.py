"""Copies, with owner and group that a namespace knows, of what a program may change in a folder.

The copy is a layer of the overlay between what is written and the folder itself: the folders of the tree, so that files
can be made in them, and the files that were changed last, so that they can be changed again (logs, checkpoints).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hotloop.launch.isolation.own_folders import is_known, may_write
from hotloop.launch.isolation.scratch import new_scratch, remove

MAX_ENTRIES = 20_000
"""Names that are looked at, the nearest to the folder first: a quarter of a second on a local disk."""
MAX_BYTES = 2 << 30
"""Copied once a session: some four seconds on a local disk."""


class Copied(NamedTuple):
    """A copy of a folder's tree.

    Attributes:
        folder: of whom.
        copy: where it is.
        left_out: files that this user may change and that were not copied; in a run they cannot be changed in place.
    """

    folder: str
    copy: str
    left_out: tuple[str, ...]


@functools.cache
def copied(folder: str, scratch_root: Path, owner: int) -> Copied:
    """Copy what cannot be copied up by the kernel, once for the life of this process.

    Args:
        folder: of the user's project.
        scratch_root: where the copy is put.
        owner: this process, whose end removes it.
    """
    copy = new_scratch("copies", root=scratch_root)
    atexit.register(_forget, copy, owner)
    files = []
    for path, status in _breadth_first(folder):
        target = copy / os.path.relpath(path, folder)
        if stat.S_ISDIR(status.st_mode):
            target.mkdir(exist_ok=True)
        elif stat.S_ISREG(status.st_mode) and not is_known(status) and may_write(path):
            files.append((path, status, target))
    left, left_out = min(MAX_BYTES, shutil.disk_usage(copy).free // 4), []
    for path, status, target in sorted(files, key=lambda one: -one[1].st_mtime):
        if status.st_size <= left and _copy(path, target):
            left -= status.st_size
        else:
            left_out.append(path)
    _as_they_were(folder, copy)
    return Copied(folder, str(copy), tuple(left_out))


def _copy(path: str, target: Path) -> bool:
    try:
        shutil.copy2(path, target)
    except OSError:
        target.unlink(missing_ok=True)
        return False
    return True


def _breadth_first(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what lies in a folder, nearest first; folders that this user may not look into are left out."""
    level, num = [folder], 0
    while level:
        below: list[str] = []
        for place in level:
            with contextlib.suppress(OSError), os.scandir(place) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    num += 1
                    if num > MAX_ENTRIES:
                        return
                    status = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(status.st_mode)
                    if is_folder and not (
                        os.access(entry.path, os.R_OK | os.X_OK) and not _is_foreign(entry)
                    ):
                        continue
                    yield entry.path, status
                    if is_folder:
                        below.append(entry.path)
        level = below


def _is_foreign(entry: os.DirEntry[str]) -> bool:
    """Whether a folder is a mount of its own (covered by itself) or a virtual environment, which nobody trains into."""
    return os.path.ismount(entry.path) or os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


def _as_they_were(folder: str, copy: Path) -> None:
    """Give the folders of a copy the mode and times of the real ones, as far as this user may use them."""
    for place, _, _ in os.walk(copy, topdown=False):
        real = os.path.join(folder, os.path.relpath(place, copy))
        with contextlib.suppress(OSError):
            status = os.stat(real)
            os.chmod(place, seen_mode(real, status))
            os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))


def seen_mode(folder: str, status: os.stat_result) -> int:
    """Return the mode of a folder that is another's, where all users look like its owner: what this user may do."""
    mode = stat.S_IMODE(status.st_mode)
    return mode | 0o700 if may_write(folder) else (mode | 0o500) & ~0o222


def _forget(copy: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child ends with the same list of what to do
        remove(copy)
