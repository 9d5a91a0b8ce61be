"""Where a trial write is made: the folders a program works in, and a folder and file of each owner and group there."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from hotloop.launch.isolation.own_folders import may_write

MAX_LOOKED = 2_000
"""Names: 20 ms."""
MAX_BYTES = 1 << 20
"""Of a file that is copied up for a trial."""


class Places(NamedTuple):
    """What to try to write."""

    folders: tuple[str, ...]
    files: tuple[str, ...]


def places_to_try(folders: Sequence[str]) -> Places:
    """Return what this user may write outside of an overlay, so must be able to write in it.

    Args:
        folders: that the program works in.
    """
    roots = [folder for folder in folders if may_write(folder)]
    found = [one for root in roots for one in _one_of_each(root)]
    return Places(
        (*roots, *(path for path, is_folder in found if is_folder)),
        tuple(path for path, is_folder in found if not is_folder),
    )


def _one_of_each(root: str) -> list[tuple[str, bool]]:
    """Return a folder and a file of each owner and group below a folder, the nearest ones."""
    tried: dict[tuple[int, int, bool], str] = {}
    num = 0
    level = [root]
    while level and num < MAX_LOOKED:
        below: list[str] = []
        for place in level:
            for path, status in _entries(place):
                num += 1
                is_folder = stat.S_ISDIR(status.st_mode)
                if is_folder:
                    below.append(path)
                if (is_folder or _is_small(status)) and may_write(path):
                    tried.setdefault((status.st_uid, status.st_gid, is_folder), path)
        level = below
    return [(path, is_folder) for (_, _, is_folder), path in tried.items()]


def _entries(folder: str) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if len(found) >= MAX_LOOKED:
                break
            with contextlib.suppress(OSError):
                if not (entry.is_dir(follow_symlinks=False) and os.path.ismount(entry.path)):
                    found.append((entry.path, entry.stat(follow_symlinks=False)))
    return found


def _is_small(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES
