"""One session: a SQLite file in `.hotloop/`, in which every finished piece of work is committed at once."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import encodable

FOLDER = ".hotloop"
SCHEMA = 1
_SUFFIX = ".sqlite"
_BESIDE = ("-wal", "-shm")
"""Ends of the names of the files that SQLite keeps beside a database."""
_Value = TypeVar("_Value")


class Session:
    """A session file, open.

    Args:
        path: the file; made if it does not exist.

    Raises:
        HotloopError: the file cannot be made, is damaged, or is of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._explained():
            self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            with self._explained():
                self._prepare()
        except HotloopError:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        """Set the connection up, and make the table in a new file."""
        ask = self._connection.execute
        ask("PRAGMA busy_timeout=5000")
        version = int(ask("PRAGMA user_version").fetchone()[0])
        if version not in {0, SCHEMA}:
            raise HotloopError(
                f"the session file {self.path} is of schema {version}, this hotloop reads schema {SCHEMA}",
                "use the hotloop that wrote it, or start a new session without --resume",
            )
        ask("PRAGMA journal_mode=WAL")
        ask("PRAGMA synchronous=FULL")
        ask(
            "CREATE TABLE IF NOT EXISTS entry "
            "(key TEXT PRIMARY KEY, body BLOB NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP)"
        )
        if not version:  # reading must not make an old session the newest
            ask(f"PRAGMA user_version={SCHEMA}")

    @property
    def name(self) -> str:
        """The session's id."""
        return self.path.stem

    def put(self, key: str, value: object) -> None:
        """Commit a value under a key; an earlier one is replaced."""
        body = _packed(value)
        with self._explained():
            self._connection.execute("INSERT OR REPLACE INTO entry (key, body) VALUES (?, ?)", (key, body))

    def get(self, key: str, kind: type[_Value]) -> _Value | None:
        """Return the value under a key, or None.

        Raises:
            HotloopError: what is there cannot be read as that kind.
        """
        with self._explained():
            row = self._connection.execute("SELECT body FROM entry WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return msgspec.msgpack.decode(row[0], type=kind)
        except msgspec.MsgspecError as error:
            raise HotloopError(
                f"the session file {self.path} holds an entry {key!r} that cannot be read: {error}",
                "start a new session: run the command without --resume",
            ) from error

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix, oldest first."""
        with self._explained():
            rows = self._connection.execute("SELECT key FROM entry ORDER BY rowid").fetchall()
        return [row[0] for row in rows if row[0].startswith(prefix)]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise _explanation(self.path, error) from error


def _packed(value: object) -> bytes:
    """JSON has no NaN, and a diverged loss is one: msgpack."""
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(encodable(value))


def _explanation(path: Path, error: sqlite3.DatabaseError) -> HotloopError:
    text = str(error)
    if "full" in text or "disk I/O" in text:
        return HotloopError(
            f"the session file {path} cannot be written: {text}; what was finished before is kept",
            "free some space, then go on with --resume",
            ExitCode.MACHINE,
        )
    if "readonly" in text or "unable to open" in text:
        return HotloopError(
            f"the session file {path} cannot be written here: {text}",
            "run from a folder that you may write to",
            ExitCode.MACHINE,
        )
    if "locked" in text:
        return HotloopError(
            f"the session file {path} is in use: {text}",
            "wait until the other hotloop is done, or start a new session without --resume",
        )
    old, new = (shlex.quote(str(name)) for name in (path, f"{path}.damaged"))
    return HotloopError(
        f"the session file {path} is damaged: {text}",
        f"move it away and start a new session: mv {old} {new}",
    )


def session_folder(base: Path) -> Path:
    """Return `.hotloop/` in a folder, made with a `.gitignore` of its own.

    Raises:
        HotloopError: it cannot be made.
    """
    folder = base / FOLDER
    try:
        folder.mkdir(exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
    except OSError as error:
        raise HotloopError(
            f"{folder} cannot be made: {error.strerror}; finished trials are kept there",
            "run from a folder that you may write to",
            ExitCode.MACHINE,
        ) from error
    return folder


def new_session(base: Path, stamp: str) -> Session:
    """Make a session named by a time stamp."""
    folder = session_folder(base)
    path = folder / f"{stamp}{_SUFFIX}"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{stamp}-{number}{_SUFFIX}"
    return Session(path)


def sessions(base: Path) -> list[Path]:
    """Return the session files of a folder, newest first."""
    found = (base / FOLDER).glob(f"*{_SUFFIX}")
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def find_session(base: Path, name: str | None = None) -> Session:
    """Open a session by its id, or the newest.

    Raises:
        HotloopError: there is none.
    """
    found = [path for path in sessions(base) if name is None or path.stem == name]
    if not found:
        raise _unknown(base, name)
    return Session(found[0])


def _unknown(base: Path, name: str | None) -> HotloopError:
    what = f"no session {name!r}" if name else "no session"
    known = ", ".join(path.stem for path in sessions(base)[:5])
    return HotloopError(
        f"there is {what} in {base / FOLDER}",
        f"known: {known}" if known else "run hotloop observe or hotloop tune here first",
    )


def remove_session(base: Path, name: str) -> None:
    """Remove a session with what was written beside it: its report, and the files of a whole run.

    Raises:
        HotloopError: there is none of that name, or it cannot be removed.
    """
    path = next((one for one in sessions(base) if one.stem == name), None)
    if path is None:
        raise _unknown(base, name)
    try:
        for file in (
            path,
            *(path.with_name(f"{path.name}{end}") for end in _BESIDE),
            path.with_suffix(".html"),
        ):
            file.unlink(missing_ok=True)
        kept = path.with_suffix("")
        if kept.is_dir() and not kept.is_symlink():
            shutil.rmtree(kept)
    except OSError as error:
        raise HotloopError(
            f"the session {name} cannot be removed: {error.strerror}",
            "remove it by hand, or ask who owns it",
            ExitCode.MACHINE,
        ) from error


def session_bytes(path: Path) -> int:
    """Return the size of a session file with its log."""
    files = (path, *(path.with_name(f"{path.name}{end}") for end in _BESIDE))
    return sum(file.stat().st_size for file in files if file.exists())
