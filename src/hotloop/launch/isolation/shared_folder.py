"""Folders in which other users may put something in the place of ours."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

_UNMAPPED = 65534
"""The owner of what belongs to nobody in this user namespace: outside of it, mostly root."""


def replaceable_by_others(folder: Path) -> Path | None:
    """Return the first folder on the way from the root in which others may rename what is ours; None: there is none.

    Args:
        folder: that is to hold something of ours, without links in its path.
    """
    way = (*reversed(folder.parents), folder)
    return next((one for one in way if _others_may_rename(one.stat())), None)


def _others_may_rename(status: os.stat_result) -> bool:
    """Whether the owner is another user, or others may write there and no sticky bit keeps them from our names."""
    if status.st_uid not in (0, os.getuid(), _UNMAPPED):
        return True
    if status.st_mode & stat.S_ISVTX:
        return False
    return bool(status.st_mode & stat.S_IWOTH) or (
        bool(status.st_mode & stat.S_IWGRP) and not _is_private(status.st_gid)
    )


def _is_private(gid: int) -> bool:
    """Whether a group is root's or the one that this user has for himself."""
    if gid == 0:
        return True
    try:
        return gid == os.getgid() and grp.getgrgid(gid).gr_name == pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return False
