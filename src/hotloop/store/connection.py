"""A connection to a session's file, also where it can only be read: on a full disk, in a read-only folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

LOG = "-wal"
"""End of the name of the write-ahead log, which SQLite keeps beside a database."""


def connected(
    path: Path,
    prepare: Callable[[sqlite3.Connection], object],
    check: Callable[[sqlite3.Connection], object],
) -> sqlite3.Connection:
    """Return a connection for writing, else one for reading.

    Args:
        path: of the file.
        prepare: sets up a connection for writing; SQLite needs files of its own beside the database for that.
        check: demands that a file can be read as it is.

    Raises:
        sqlite3.DatabaseError: the file can neither be written nor read.
    """
    try:
        return _ready(sqlite3.connect(path, isolation_level=None), prepare)
    except sqlite3.OperationalError as error:
        if is_in_use(error) or not path.stat().st_size or _has_log(path):
            raise
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            return _ready(sqlite3.connect(address, uri=True, isolation_level=None), check)
        except sqlite3.DatabaseError:
            if is_full(error):  # the file was begun a moment ago, and nothing is in it
                raise error from None
            raise


def is_in_use(error: sqlite3.DatabaseError) -> bool:
    """Whether another process keeps the file."""
    return "locked" in str(error)


def is_full(error: sqlite3.DatabaseError) -> bool:
    """Whether the disk is full."""
    return any(words in str(error) for words in ("full", "disk I/O"))


def _ready(
    connection: sqlite3.Connection, prepare: Callable[[sqlite3.Connection], object]
) -> sqlite3.Connection:
    try:
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    """Whether part of what was committed lies beside the file."""
    log = path.with_name(f"{path.name}{LOG}")
    return log.exists() and log.stat().st_size > 0
