"""Listings and lookups of the write guard: the folder as the program left it, under the names that it gave."""

from __future__ import annotations

import os
from typing import Any

from hotloop.probe.setup.merged_view import MergedView


def reader(view: MergedView, original: Any) -> Any:
    """Return a function that looks up what the program left: `stat`, `access`, `readlink` and the like."""
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


def mover(view: MergedView, original: Any) -> Any:
    """Return a `chdir` that goes where the program sees the folder."""

    def chdir(path: Any) -> None:
        whole = None if isinstance(path, int) else view.whole(path)
        if whole is None:
            original(path)
            return
        place = view.place(whole)
        # The real folder where there is one: what C code opens by a relative name is then what is there.
        original(whole if os.path.isdir(whole) and os.path.isdir(place) else place)

    return chdir


def lister(view: MergedView, original: Any) -> Any:
    """Return a `listdir` of what the program left."""

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


def scanner(view: MergedView, original: Any) -> Any:
    """Return a `scandir` of what the program left."""

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
