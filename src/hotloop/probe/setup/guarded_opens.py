"""Opens of the write guard: what is opened for writing lies in scratch, what is read is what was written there."""

from __future__ import annotations

import errno
import functools
import os
from typing import Any

from hotloop.probe.setup.merged_view import MergedView
from hotloop.probe.setup.system_error import system_error

OPENER_AT = 6
"""Position of `opener` among the arguments of `open` after the mode."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TEMPORARY = getattr(os, "O_TMPFILE", 0)


def guarded(view: MergedView, original: Any, changed: Any) -> Any:
    """Return a function that calls `changed` for the program, and `original` for calls that `changed` makes itself."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if getattr(view.busy, "now", False):
            return original(*args, **kwargs)
        view.busy.now = True
        try:
            return changed(*args, **kwargs)
        finally:
            view.busy.now = False

    return function


def opener(view: MergedView, original: Any) -> Any:
    """Return an `open`."""

    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("opener") is not None or len(args) >= OPENER_AT:
            return _by_opener(view, original, file, mode, *args, **kwargs)
        whole = None if isinstance(file, int) else view.whole(file)
        if whole is None:
            return original(file, mode, *args, **kwargs)
        if any(letter in mode for letter in "wax+"):
            place = _writable(
                view, whole, exclusive="x" in mode, create="r" not in mode, keep="w" not in mode
            )
        else:
            place = view.place(whole)
        return original(place, mode, *args, **kwargs)

    return open_


def _by_opener(view: MergedView, original: Any, *args: Any, **kwargs: Any) -> Any:
    """The program opens the file itself (`tempfile` does), by functions that are guarded."""
    view.busy.now = False
    try:
        return original(*args, **kwargs)
    finally:
        view.busy.now = True


def descriptor_opener(view: MergedView, original: Any) -> Any:
    """Return an `os.open`."""

    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> Any:
        follow = not flags & getattr(os, "O_NOFOLLOW", 0)
        whole = view.whole(path, dir_fd=dir_fd, follow=follow)
        if whole is None:
            return original(path, flags, mode, dir_fd=dir_fd)
        if _TEMPORARY and flags & _TEMPORARY == _TEMPORARY:
            raise system_error(errno.EOPNOTSUPP, whole)  # `tempfile` then makes a file with a name
        if not flags & _WRITING or flags & getattr(os, "O_DIRECTORY", 0):
            return original(view.place(whole), flags, mode)
        creates = bool(flags & os.O_CREAT)
        place = _writable(
            view,
            whole,
            exclusive=creates and bool(flags & os.O_EXCL),
            create=creates,
            keep=not flags & os.O_TRUNC,
        )
        return original(place, flags, mode)

    return open_


def saver(view: MergedView, original: Any, at: int) -> Any:
    """Return a function that saves into scratch; `at`: position of the path among its arguments."""

    def write(path: Any) -> Any:
        whole = view.whole(path)
        return path if whole is None else _writable(view, whole, exclusive=False, create=True, keep=False)

    written = guarded(view, lambda path: path, write)

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        if len(args) > at and isinstance(args[at], (str, os.PathLike)):
            args = (*args[:at], written(args[at]), *args[at + 1 :])
        elif isinstance(kwargs.get("f"), (str, os.PathLike)):
            kwargs["f"] = written(kwargs["f"])
        return original(*args, **kwargs)

    return save


def guard_sqlite(view: MergedView) -> None:
    """SQLite writes from C; its module is small, and where it is missing there is nothing to guard."""
    try:
        import _sqlite3
    except ImportError:
        return
    original = _sqlite3.connect

    def connect(database: Any, *args: Any, **kwargs: Any) -> Any:
        whole = view.whole(database) if isinstance(database, (str, bytes, os.PathLike)) else None
        if whole is None or os.fspath(database) in {"", ":memory:", b":memory:"} or kwargs.get("uri"):
            return original(database, *args, **kwargs)
        for unfinished in (f"{whole}-wal", f"{whole}-journal"):
            if view.exists(unfinished):
                view.written(unfinished, keep=True)
        return original(view.written(whole, keep=True), *args, **kwargs)

    _sqlite3.connect = guarded(view, original, connect)


def _writable(view: MergedView, whole: str, *, exclusive: bool, create: bool, keep: bool) -> str:
    exists = view.exists(whole)
    if exclusive and exists:
        raise system_error(errno.EEXIST, whole)
    if not create and not exists:
        raise system_error(errno.ENOENT, whole)
    if exists and os.path.isdir(view.place(whole)):
        raise system_error(errno.EISDIR, whole)
    return view.written(whole, keep=keep)
