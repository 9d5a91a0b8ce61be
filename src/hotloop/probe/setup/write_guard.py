"""The second-best write guard: inside Python, where the system does not permit a namespace with an overlay.

Writes go to scratch; reads see what was written there. It catches what Python code opens, makes, links, renames and
removes, `torch.save` and `sqlite3` included. It cannot redirect files written by C++ or Rust code, or by programs that
are not Python; where the kernel has Landlock, those are denied.
"""

from __future__ import annotations

import builtins
import errno
import functools
import io
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.probe.setup.merged_view import MergedView, copy

OPENER_AT = 6
"""Position of `opener` among the arguments of `open` after the mode."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_TEMPORARY = getattr(os, "O_TMPFILE", 0)


def install(folders: Sequence[str], scratch: str, free: Sequence[str] = ()) -> MergedView:
    """Guard this process; called before any of the program's code."""
    view = MergedView(folders, scratch, free)
    sys.dont_write_bytecode = True  # the import system writes by a way of its own
    builtins.open = io.open = _guarded(view, io.open, _opener(view, io.open))
    wraps: dict[Callable[[MergedView, Any], Any], tuple[str, ...]] = {
        _descriptor_opener: ("open",),
        _reader: ("stat", "lstat", "access", "readlink", "statvfs", "getxattr", "listxattr"),
        _mover: ("chdir",),
        _changer: ("chmod", "utime", "truncate", "chown", "lchown", "setxattr", "removexattr"),
        _descriptor_changer: ("fchmod", "fchown"),
        _remover: ("remove", "unlink", "rmdir"),
        _renamer: ("rename", "replace"),
        _maker: ("mkdir", "mkfifo", "mknod"),
        _linker: ("symlink",),
        _hard_linker: ("link",),
        _lister: ("listdir",),
        _scanner: ("scandir",),
    }
    for wrap, names in wraps.items():
        for name in names:
            _patch(view, name, wrap)
    original = os.getcwd
    os.getcwd = lambda: view.below(original())
    shutil._use_fd_functions = False  # type: ignore[attr-defined]  # rmtree by paths, which can be looked up
    _guard_sqlite(view)
    return view


def install_torch(view: MergedView) -> None:
    """Guard what torch writes from C++."""
    import torch

    for owner, name, at in ((torch, "save", 1), (torch.jit, "save", 1)):
        setattr(owner, name, _saver(view, getattr(owner, name), at))


def _patch(view: MergedView, name: str, wrap: Callable[[MergedView, Any], Any]) -> None:
    original = getattr(os, name, None)
    if original is None:
        return
    changed = _guarded(view, original, wrap(view, original))
    setattr(os, name, changed)
    for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if original in known:  # libraries ask whether a function is among them
            known.add(changed)
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
    if accessor is not None and hasattr(accessor, name):  # Python 3.10 keeps the functions themselves
        setattr(accessor, name, staticmethod(changed))


def _guarded(view: MergedView, original: Any, changed: Any) -> Any:
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


def _opener(view: MergedView, original: Any) -> Any:
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


def _writable(view: MergedView, whole: str, *, exclusive: bool, create: bool, keep: bool) -> str:
    exists = view.exists(whole)
    if exclusive and exists:
        raise _error(errno.EEXIST, whole)
    if not create and not exists:
        raise _error(errno.ENOENT, whole)
    if exists and os.path.isdir(view.place(whole)):
        raise _error(errno.EISDIR, whole)
    return view.written(whole, keep=keep)


def _descriptor_opener(view: MergedView, original: Any) -> Any:
    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> Any:
        follow = not flags & getattr(os, "O_NOFOLLOW", 0)
        whole = view.whole(path, dir_fd=dir_fd, follow=follow)
        if whole is None:
            return original(path, flags, mode, dir_fd=dir_fd)
        if _TEMPORARY and flags & _TEMPORARY == _TEMPORARY:
            raise _error(errno.EOPNOTSUPP, whole)  # `tempfile` then makes a file with a name
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


def _reader(view: MergedView, original: Any) -> Any:
    follows = original.__name__ not in {"lstat", "readlink"}

    def read(path: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, int):
            return original(path, *args, **kwargs)
        follow = follows and kwargs.get("follow_symlinks", True)
        whole = view.whole(path, dir_fd=kwargs.get("dir_fd"), follow=follow)
        if whole is None:
            return original(path, *args, **kwargs)
        if original.__name__ == "access" and not view.exists(whole):
            return False
        kwargs.pop("dir_fd", None)
        return original(view.place(whole), *args, **kwargs)

    return read


def _mover(view: MergedView, original: Any) -> Any:
    def chdir(path: Any) -> None:
        whole = None if isinstance(path, int) else view.whole(path)
        if whole is None:
            original(path)
            return
        place = view.place(whole)
        # The real folder where there is one: what C code opens by a relative name is then what is there.
        original(whole if os.path.isdir(whole) and os.path.isdir(place) else place)

    return chdir


def _changer(view: MergedView, original: Any) -> Any:
    def change(path: Any, *args: Any, **kwargs: Any) -> Any:
        follow = kwargs.get("follow_symlinks", True) and original.__name__ != "lchown"
        whole = view.whole(path, dir_fd=kwargs.get("dir_fd"), follow=follow)
        if whole is None:
            return original(path, *args, **kwargs)
        if isinstance(path, int) and original.__name__ == "truncate":
            return original(path, *args, **kwargs)  # open for writing: it is in scratch already
        kwargs.pop("dir_fd", None)
        os.lstat(view.place(whole))  # the system's own error where there is nothing
        return original(view.written(whole, keep=True), *args, **kwargs)

    return change


def _descriptor_changer(view: MergedView, original: Any) -> Any:
    """A file that is open for reading is the user's own: its mode and owner change in scratch."""
    by_path: Any = {"fchmod": os.chmod, "fchown": os.chown}[original.__name__]

    def change(descriptor: int, *args: Any) -> Any:
        whole = view.whole(descriptor)
        if whole is None or os.path.lexists(view.above(whole)):
            return original(descriptor, *args)
        return by_path(view.written(whole, keep=True), *args)

    return change


def _remover(view: MergedView, original: Any) -> Any:
    def remove(path: Any, *, dir_fd: int | None = None) -> None:
        whole = view.whole(path, dir_fd=dir_fd, follow=False)
        if whole is None:
            original(path, dir_fd=dir_fd)
            return
        place = view.place(whole)
        is_folder = os.path.isdir(place) and not os.path.islink(place)
        os.lstat(place)  # the system's own error where there is nothing
        if original.__name__ == "rmdir":
            if not is_folder:
                raise _error(errno.ENOTDIR, whole)
            if view.names(whole):
                raise _error(errno.ENOTEMPTY, whole)
        elif is_folder:
            raise _error(errno.EISDIR, whole)
        if not os.access(view.place(os.path.dirname(whole)), os.W_OK):
            raise _error(errno.EACCES, whole)
        view.remove(whole)

    return remove


def _renamer(view: MergedView, original: Any) -> Any:
    def rename(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        source = view.whole(src, dir_fd=src_dir_fd, follow=False)
        target = view.whole(dst, dir_fd=dst_dir_fd, follow=False)
        if source is None and target is None:
            original(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            return
        seen = view.place(source) if source is not None else src
        os.lstat(seen)
        if source == target:
            return
        place = view.written(target, keep=False) if target is not None else dst
        if target is not None and os.path.isdir(seen) and not os.path.islink(seen):
            if view.exists(target) and view.names(target):
                raise _error(errno.ENOTEMPTY, target)
            view.remove(target)
            place = view.written(target, keep=False)
            _copy_seen(view, source, seen, place)
        else:
            if os.path.lexists(place):
                os.unlink(place)
            copy(seen, place)
        if source is not None:
            view.remove(source)
        elif os.path.isdir(src):
            shutil.rmtree(src)
        else:
            os.unlink(src)

    return rename


def _copy_seen(view: MergedView, source: str | None, seen: str, place: str) -> None:
    """Copy a folder as the program sees it: what was there, and what it wrote on top."""
    if source is None:
        copy(seen, place)
        return
    os.mkdir(place)
    for name in view.names(source):
        inner = os.path.join(source, name)
        found = view.place(inner)
        if os.path.isdir(found) and not os.path.islink(found):
            _copy_seen(view, inner, found, os.path.join(place, name))
        else:
            copy(found, os.path.join(place, name))


def _maker(view: MergedView, original: Any) -> Any:
    def make(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> None:
        whole = view.whole(path, dir_fd=dir_fd, follow=False)
        if whole is None:
            original(path, *args, dir_fd=dir_fd, **kwargs)
            return
        if view.exists(whole):
            raise _error(errno.EEXIST, whole)
        original(view.written(whole, keep=False), *args, **kwargs)

    return make


def _linker(view: MergedView, original: Any) -> Any:
    def symlink(src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        whole = view.whole(dst, dir_fd=dir_fd, follow=False)
        if whole is None:
            original(src, dst, target_is_directory, dir_fd=dir_fd)
            return
        if view.exists(whole):
            raise _error(errno.EEXIST, whole)
        original(src, view.written(whole, keep=False))

    return symlink


def _hard_linker(view: MergedView, original: Any) -> Any:
    """A hard link to a file of the user's would be that file: its copy is linked instead."""

    def link(src: Any, dst: Any, **kwargs: Any) -> None:
        source = view.whole(src, dir_fd=kwargs.get("src_dir_fd"), follow=False)
        target = view.whole(dst, dir_fd=kwargs.get("dst_dir_fd"), follow=False)
        if source is None and target is None:
            original(src, dst, **kwargs)
            return
        if target is not None and view.exists(target):
            raise _error(errno.EEXIST, target)
        if source is not None:
            os.lstat(view.place(source))
        place = view.written(source, keep=True) if source is not None else src
        original(place, view.written(target, keep=False) if target is not None else dst)

    return link


def _lister(view: MergedView, original: Any) -> Any:
    def listdir(path: Any = None) -> Any:
        given = path if path is not None else "."
        whole = view.whole(given)
        if whole is None:
            return original(path) if path is not None else original()
        if view.is_untouched(whole):
            return original(view.place(whole))
        os.listdir(view.place(whole))  # the system's own error
        names = view.names(whole)
        return [os.fsencode(name) for name in names] if isinstance(given, bytes) else names

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


class _Entry:
    """An entry under the name that the program gave its folder, wherever it lies.

    Args:
        entry: the real one.
        folder: what was scanned.
    """

    def __init__(self, entry: Any, folder: Any) -> None:
        self._entry = entry
        self.name = entry.name
        self.path = os.path.join(folder, entry.name)

    def __fspath__(self) -> Any:
        return self.path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)


def _scanner(view: MergedView, original: Any) -> Any:
    def scandir(path: Any = ".") -> Any:
        whole = view.whole(path)
        if whole is None or view.is_untouched(whole):
            return original(path)
        os.listdir(view.place(whole))  # the system's own error
        names = set(view.names(whole))
        entries = _Entries()
        folder = os.fsdecode(path) if not isinstance(path, int) else ""
        for place in (view.above(whole), whole):
            if os.path.isdir(place):
                for entry in original(place):
                    if entry.name in names:
                        names.discard(entry.name)
                        entries.append(_Entry(entry, folder))
        return entries

    return scandir


def _saver(view: MergedView, original: Any, at: int) -> Any:
    def write(path: Any) -> Any:
        whole = view.whole(path)
        return path if whole is None else _writable(view, whole, exclusive=False, create=True, keep=False)

    written = _guarded(view, lambda path: path, write)

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        if len(args) > at and isinstance(args[at], (str, os.PathLike)):
            args = (*args[:at], written(args[at]), *args[at + 1 :])
        elif isinstance(kwargs.get("f"), (str, os.PathLike)):
            kwargs["f"] = written(kwargs["f"])
        return original(*args, **kwargs)

    return save


def _guard_sqlite(view: MergedView) -> None:
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

    _sqlite3.connect = _guarded(view, original, connect)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
