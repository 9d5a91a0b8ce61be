"""The second-best write guard: inside Python, where the system does not permit a namespace with an overlay.

Writes below the protected folders go to scratch; reads see what was written there. It catches what Python code opens,
makes, renames and removes, `torch.save` included. It cannot catch files written by C++, Rust or SQLite code, or by
programs that are not Python.
"""

from __future__ import annotations

import builtins
import errno
import functools
import hashlib
import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Guard:
    """Where each path of the program really is.

    Args:
        folders: what is protected, as real paths.
        scratch: what is written instead lies below it under the same path.
    """

    def __init__(self, folders: Sequence[str], scratch: str) -> None:
        self._folders = tuple(folder.rstrip(os.sep) + os.sep for folder in folders)
        self._upper = os.path.join(scratch, "upper")
        self._gone = os.path.join(scratch, "gone")
        self.busy = threading.local()
        """Set while this guard looks at files itself: what it calls then is not redirected."""
        os.makedirs(self._upper, exist_ok=True)
        os.makedirs(self._gone, exist_ok=True)

    def whole(self, path: Any) -> str | None:
        """Return the whole path if it is protected; None: it is not, or is a descriptor."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        name = os.path.abspath(os.fsdecode(path))
        folder, base = os.path.split(name)
        name = os.path.join(os.path.realpath(folder), base)
        return name if (name + os.sep).startswith(self._folders) else None

    def above(self, whole: str) -> str:
        """Return where a protected path lies in scratch, once it has been written."""
        return self._upper + whole

    def mark(self, whole: str) -> str:
        """Return the file that says a protected path was removed."""
        return os.path.join(self._gone, hashlib.sha256(whole.encode()).hexdigest())

    def seen(self, path: Any) -> Any:
        """Return where to read a path.

        Raises:
            FileNotFoundError: the program has removed it.
        """
        whole = self.whole(path)
        if whole is None:
            return path
        if os.path.lexists(self.above(whole)):
            return self.above(whole)
        if any(os.path.lexists(self.mark(part)) for part in _parts(whole)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        return path

    def exists(self, path: Any) -> bool:
        """Whether the program sees something there."""
        try:
            return os.path.lexists(self.seen(path))
        except FileNotFoundError:
            return False

    def written(self, path: Any, *, keep: bool) -> Any:
        """Return where to write a path; its folder is there, and its content where it is kept.

        Raises:
            FileNotFoundError: the program sees no such folder.
        """
        whole = self.whole(path)
        if whole is None:
            return path
        if not os.path.isdir(self.seen(os.path.dirname(whole))):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        above = self.above(whole)
        if keep and not os.path.lexists(above) and self.exists(whole):
            os.makedirs(os.path.dirname(above), exist_ok=True)
            _copy(self.seen(whole), above)
        os.makedirs(os.path.dirname(above), exist_ok=True)
        if os.path.lexists(self.mark(whole)):
            os.unlink(self.mark(whole))
        return above

    def remove(self, whole: str) -> None:
        """Let the program see nothing there any more."""
        above = self.above(whole)
        if os.path.isdir(above) and not os.path.islink(above):
            shutil.rmtree(above)
        elif os.path.lexists(above):
            os.unlink(above)
        with open(self.mark(whole), "w") as file:
            file.write(whole)

    def names(self, path: Any) -> list[str]:
        """Return the names that the program sees in a folder."""
        whole = self.whole(path if path is not None else ".")
        if whole is None:
            return os.listdir(path)
        names: set[str] = set()
        for place in (whole, self.above(whole)):
            if os.path.isdir(place):
                names.update(os.listdir(place))
        return sorted(name for name in names if self.exists(os.path.join(whole, name)))


def install(folders: Sequence[str], scratch: str) -> Guard:
    """Guard this process; called before any of the program's code."""
    guard = Guard(folders, scratch)
    sys.dont_write_bytecode = True  # the import system writes by a way of its own
    builtins.open = io.open = _guarded(guard, io.open, _opener(guard, io.open))
    wraps: dict[Callable[[Guard, Any], Any], tuple[str, ...]] = {
        _descriptor_opener: ("open",),
        _reader: ("stat", "lstat", "access", "readlink", "chdir"),
        _changer: ("chmod", "utime", "truncate", "chown"),
        _remover: ("remove", "unlink", "rmdir"),
        _renamer: ("rename", "replace"),
        _maker: ("mkdir",),
        _lister: ("listdir",),
        _scanner: ("scandir",),
    }
    for wrap, names in wraps.items():
        for name in names:
            _patch(guard, name, wrap)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]  # rmtree by paths, which can be looked up
    return guard


def install_torch(guard: Guard) -> None:
    """Guard what torch writes from C++."""
    import torch

    for owner, name, at in ((torch, "save", 1), (torch.jit, "save", 1)):
        setattr(owner, name, _saver(guard, getattr(owner, name), at))


def _patch(guard: Guard, name: str, wrap: Callable[[Guard, Any], Any]) -> None:
    original = getattr(os, name, None)
    if original is not None:
        changed = _guarded(guard, original, wrap(guard, original))
        setattr(os, name, changed)
        accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
        if accessor is not None and hasattr(accessor, name):  # Python 3.10 keeps the functions themselves
            setattr(accessor, name, staticmethod(changed))


def _guarded(guard: Guard, original: Any, changed: Any) -> Any:
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if getattr(guard.busy, "now", False):
            return original(*args, **kwargs)
        guard.busy.now = True
        try:
            return changed(*args, **kwargs)
        finally:
            guard.busy.now = False

    return function


def _opener(guard: Guard, original: Any) -> Any:
    def open_(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if any(letter in mode for letter in "wax+"):
            if "x" in mode and guard.whole(file) is not None and guard.exists(file):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(file))
            return original(guard.written(file, keep="w" not in mode), mode, *args, **kwargs)
        return original(guard.seen(file), mode, *args, **kwargs)

    return open_


def _descriptor_opener(guard: Guard, original: Any) -> Any:
    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            return original(path, flags, mode, dir_fd=dir_fd)  # type: ignore[no-any-return]
        if flags & _WRITING and not (flags & os.O_DIRECTORY):
            if (
                flags & os.O_CREAT
                and flags & os.O_EXCL
                and guard.whole(path) is not None
                and guard.exists(path)
            ):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
            if not flags & os.O_CREAT and not guard.exists(path):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return original(guard.written(path, keep=not flags & os.O_TRUNC), flags, mode)  # type: ignore[no-any-return]
        return original(guard.seen(path), flags, mode)  # type: ignore[no-any-return]

    return open_


def _reader(guard: Guard, original: Any) -> Any:
    def read(path: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("dir_fd") is not None:
            return original(path, *args, **kwargs)
        if original.__name__ == "access":
            return original(guard.seen(path), *args, **kwargs) if guard.exists(path) else False
        return original(guard.seen(path), *args, **kwargs)

    return read


def _changer(guard: Guard, original: Any) -> Any:
    def change(path: Any, *args: Any, **kwargs: Any) -> Any:
        if guard.whole(path) is None or kwargs.get("dir_fd") is not None:
            return original(path, *args, **kwargs)
        return original(guard.written(guard.seen(path), keep=True), *args, **kwargs)

    return change


def _remover(guard: Guard, original: Any) -> Any:
    def remove(path: Any, *, dir_fd: int | None = None) -> None:
        whole = guard.whole(path) if dir_fd is None else None
        if whole is None:
            original(path, dir_fd=dir_fd) if dir_fd is not None else original(path)
            return
        seen = guard.seen(path)
        if original.__name__ == "rmdir" and guard.names(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), os.fspath(path))
        os.lstat(seen)  # the system's own error where there is nothing
        guard.remove(whole)

    return remove


def _renamer(guard: Guard, original: Any) -> Any:
    def rename(src: Any, dst: Any, **kwargs: Any) -> None:
        source = guard.whole(src)
        if kwargs or (source is None and guard.whole(dst) is None):
            original(src, dst, **kwargs)
            return
        seen, target = guard.seen(src), guard.written(dst, keep=False)
        _copy(seen, target)
        if source is not None:
            guard.remove(source)
        else:
            os.unlink(src)

    return rename


def _maker(guard: Guard, original: Any) -> Any:
    def mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        whole = guard.whole(path) if dir_fd is None else None
        if whole is None:
            original(path, mode, dir_fd=dir_fd) if dir_fd is not None else original(path, mode)
            return
        if guard.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        original(guard.written(path, keep=False), mode)

    return mkdir


def _lister(guard: Guard, original: Any) -> Any:
    def listdir(path: Any = None) -> Any:
        if guard.whole(path if path is not None else ".") is None:
            return original(path) if path is not None else original()
        os.stat(guard.seen(path if path is not None else "."))
        return guard.names(path)

    return listdir


class _Entries(list[Any]):
    """What `os.scandir` returns: an iterator that can be closed."""

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __next__(self) -> Any:
        if not self:
            raise StopIteration
        return self.pop(0)

    def close(self) -> None:
        """Forget the rest."""
        self.clear()


def _scanner(guard: Guard, original: Any) -> Any:
    def scandir(path: Any = ".") -> Any:
        whole = guard.whole(path)
        if whole is None or not (os.path.isdir(guard.above(whole)) or os.listdir(guard._gone)):
            return original(path)
        os.stat(guard.seen(path))
        names = set(guard.names(path))
        entries = _Entries()
        for place in (guard.above(whole), whole):
            if os.path.isdir(place):
                for entry in original(place):
                    if entry.name in names:
                        names.discard(entry.name)
                        entries.append(entry)
        return entries

    return scandir


def _saver(guard: Guard, original: Any, at: int) -> Any:
    written = _guarded(guard, lambda path: path, lambda path: guard.written(path, keep=False))

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        if len(args) > at and isinstance(args[at], (str, os.PathLike)):
            args = (*args[:at], written(args[at]), *args[at + 1 :])
        elif isinstance(kwargs.get("f"), (str, os.PathLike)):
            kwargs["f"] = written(kwargs["f"])
        return original(*args, **kwargs)

    return save


def _parts(whole: str) -> list[str]:
    """A path and the folders above it: one removed takes what was in it with it."""
    parts = [whole]
    while os.path.dirname(parts[-1]) != parts[-1]:
        parts.append(os.path.dirname(parts[-1]))
    return parts


def _copy(source: str, target: str) -> None:
    if os.path.isdir(source) and not os.path.islink(source):
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
