"""Whether a file may be opened as a session: a regular file of hotloop's own, no link, no other application's."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from hotloop.model.errors import ExitCode, HotloopError

APPLICATION_ID = 0x686F746C
"""`hotl`, in SQLite's header, where `file` and other programs look."""
_MAGIC = b"SQLite format 3\x00"


def check_ours(path: Path) -> bool:
    """Demand that a file is a session or can become one; return whether it is there, with something in it.

    Nothing is written, and SQLite opens it for reading at most.

    Raises:
        HotloopError: it is a link, no regular file, or another application's database.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise HotloopError(
            f"the session file {path} cannot be read: {error.strerror}", "check its name", ExitCode.MACHINE
        ) from error
    if not stat.S_ISREG(status.st_mode):
        what = "a link" if stat.S_ISLNK(status.st_mode) else "no regular file"
        raise _refused(path, f"is {what}")
    if not status.st_size:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HotloopError(
            f"the session file {path} cannot be read: {error.strerror}",
            "check who owns it",
            ExitCode.MACHINE,
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        header = file.read(72)
    if not header.startswith(_MAGIC):
        return True  # SQLite says what is wrong with it, and leaves it alone
    application = int.from_bytes(header[68:72], "big")
    if application not in {0, APPLICATION_ID} or (application == 0 and not _has_our_table(path)):
        raise _refused(path, "is another application's database")
    return True


def _has_our_table(path: Path) -> bool:
    """Sessions of earlier versions carry no mark: they are known by their only table."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return True  # a damaged file: said when it is opened
    return all(name == "entry" for (name,) in tables)


def _refused(path: Path, why: str) -> HotloopError:
    return HotloopError(
        f"{path} {why}, so it is not opened as a session", "move it out of the .hotloop folder"
    )
