"""One session: a SQLite file in `.hotloop/`, in which every finished piece of work is committed at once."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.foreign_text import encodable
from hotloop.store.connection import LOG, connected, is_full, is_in_use
from hotloop.store.file_check import APPLICATION_ID, check_ours
from hotloop.store.lock import claimed, release

FOLDER = ".hotloop"
SCHEMA = 1
SHOWN = 5
"""Sessions that are named where one is not found."""
ELSEWHERE = "run it from a folder that you may write to, with the full path of your script"
_SUFFIX = ".sqlite"
_BESIDE = (LOG, "-shm")
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
        self._claim: int | None = None
        if not check_ours(path):
            _make_private(path)
        with self._explained():
            self._connection = connected(path, self._prepare, self._version)

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the file's schema; 0: the file is new.

        Raises:
            HotloopError: its version differs from this hotloop's.
        """
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version not in {0, SCHEMA}:
            raise HotloopError(
                f"the session file {self.path} is of schema {version}, this hotloop reads schema {SCHEMA}",
                "use the hotloop that wrote it, or start a new session without --resume",
            )
        return version

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Set the connection up, and make the table in a new file."""
        ask = connection.execute
        ask("PRAGMA busy_timeout=5000")
        version = self._version(connection)
        if not version:  # before the log: the file itself says at once whose it is
            ask(f"PRAGMA application_id={APPLICATION_ID}")
        ask("PRAGMA journal_mode=WAL")
        ask("PRAGMA synchronous=FULL")
        ask(
            "CREATE TABLE IF NOT EXISTS entry "
            "(key TEXT PRIMARY KEY, body BLOB NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP)"
        )
        if not version:  # reading must not make an old session the newest
            ask(f"PRAGMA user_version={SCHEMA}")

    def claim(self) -> None:
        """Keep other hotloops from going on with this session, as long as it is open.

        Raises:
            HotloopError: a different process uses it.
        """
        self._claim = claimed(
            self.path,
            "wait until that one is done, or start a new session: run the command without --resume",
        )

    @property
    def name(self) -> str:
        """The session's id."""
        return self.path.stem

    def put(self, key: str, value: object) -> None:
        """Commit a value under a key, replacing an earlier one."""
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
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise HotloopError(
                f"the session file {self.path} holds an entry {key!r} that cannot be read: {error}",
                "start a new session: run the command without --resume",
            ) from error

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix, oldest first."""
        with self._explained():
            rows = self._connection.execute("SELECT key FROM entry ORDER BY rowid").fetchall()
        return [row[0] for row in rows if isinstance(row[0], str) and row[0].startswith(prefix)]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
        if self._claim is not None:
            release(self.path, self._claim)
            self._claim = None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise _explanation(self.path, error) from error


def _make_private(path: Path) -> None:
    """An empty file for this user alone: a session holds commands and paths.

    Raises:
        HotloopError: it cannot be made.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise HotloopError(
            f"the session file {path} cannot be written here: {error.strerror}",
            ELSEWHERE,
            ExitCode.MACHINE,
        ) from error


def _packed(value: object) -> bytes:
    """JSON has no NaN, and a diverged loss is one: msgpack."""
    try:
        return msgspec.msgpack.encode(value)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(encodable(value))


def _explanation(path: Path, error: sqlite3.DatabaseError) -> HotloopError:
    text = str(error)
    if is_full(error):
        return HotloopError(
            f"the session file {path} cannot be written: {text}; what was finished before is kept",
            "free some space; hotloop tune goes on with --resume",
            ExitCode.MACHINE,
        )
    if "readonly" in text or "unable to open" in text:
        return HotloopError(
            f"the session file {path} cannot be written here: {text}",
            ELSEWHERE,
            ExitCode.MACHINE,
        )
    if is_in_use(error):
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
        _check_no_link(folder)
        # Made anew or left as it is: a link of that name could lead to any file.
        with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
            file.write("*\n")
    except OSError as error:
        raise _not_writable(folder, error) from error
    return folder


def check_storable(base: Path) -> None:
    """Demand that a session can be made in a folder, before time is spent on what it is to hold; nothing is left there.

    Raises:
        HotloopError: it cannot.
    """
    folder = base / FOLDER
    _check_no_link(folder)
    try:
        with tempfile.TemporaryFile(dir=folder if folder.exists() else base):
            pass
    except OSError as error:
        raise _not_writable(folder, error) from error


def _check_no_link(folder: Path) -> None:
    if folder.is_symlink():
        raise HotloopError(
            f"{folder} is a link, so nothing is written there", "remove it, or run from another folder"
        )


def _not_writable(folder: Path, error: OSError) -> HotloopError:
    return HotloopError(
        f"no session can be stored in {folder}: {error.strerror}", ELSEWHERE, ExitCode.MACHINE
    )


def new_session(base: Path, stamp: str) -> Session:
    """Make a session named by a time stamp."""
    folder = session_folder(base)
    path = folder / f"{stamp}{_SUFFIX}"
    number = 1
    while os.path.lexists(path):
        number += 1
        path = folder / f"{stamp}-{number}{_SUFFIX}"
    return Session(path)


def sessions(base: Path) -> list[Path]:
    """Return the session files of a folder, newest first."""
    folder = base / FOLDER
    if folder.is_symlink():
        return []
    found = [(path.lstat(), path) for path in folder.glob(f"*{_SUFFIX}")]
    files = [(status.st_mtime_ns, path) for status, path in found if stat.S_ISREG(status.st_mode)]
    return [path for _, path in sorted(files, key=lambda one: (one[0], one[1].name), reverse=True)]


def is_session_file(name: str) -> bool:
    """Whether a word names the file of a session."""
    return name.endswith(_SUFFIX) and Path(name).is_file()


def find_session(base: Path, name: str | None = None) -> Session:
    """Open a session by its id, the newest, or one that lies elsewhere: by its file.

    Raises:
        HotloopError: there is none.
    """
    if name is not None and name.endswith(_SUFFIX):
        path = Path(name) if Path(name).is_file() else base / name
        if not path.is_file():
            raise HotloopError(f"there is no file {name}", "check its name")
        return Session(path)
    found = [path for path in sessions(base) if name is None or path.stem == name]
    if not found:
        raise _unknown(base, name)
    return Session(found[0])


def _unknown(base: Path, name: str | None) -> HotloopError:
    what = f"no session {name!r}" if name else "no session"
    every = [path.stem for path in sessions(base)]
    known = ", ".join(every[:SHOWN]) + (
        f" and {len(every) - SHOWN} earlier ones" if len(every) > SHOWN else ""
    )
    return HotloopError(
        f"there is {what} in {base / FOLDER}",
        f"known: {known}" if known else "run hotloop observe or hotloop tune here first",
    )


def remove_session(base: Path, name: str) -> None:
    """Remove a session with what was written beside it: its report, and the files of a whole run.

    Raises:
        InUseError: another hotloop is at it; it is left as it is.
        HotloopError: there is none of that name, or it cannot be removed.
    """
    path = next((one for one in sessions(base) if one.stem == name), None)
    if path is None:
        raise _unknown(base, name)
    try:
        claim = claimed(path, "wait until that one is done, or end it")
        try:
            _remove_files(path)
        finally:
            release(path, claim)
    except OSError as error:
        raise HotloopError(
            f"the session {name} cannot be removed: {error.strerror}",
            "remove it by hand, or ask who owns it",
            ExitCode.MACHINE,
        ) from error


def _remove_files(path: Path) -> None:
    beside = [path.with_name(f"{path.name}{end}") for end in _BESIDE]
    for file in (path, *beside, path.with_suffix(".html")):
        file.unlink(missing_ok=True)
    kept = path.with_suffix("")
    if kept.is_dir() and not kept.is_symlink():
        shutil.rmtree(kept)


def session_bytes(path: Path) -> int:
    """Return the size of a session file with its log."""
    files = (path, *(path.with_name(f"{path.name}{end}") for end in _BESIDE))
    return sum(file.stat().st_size for file in files if file.exists())
