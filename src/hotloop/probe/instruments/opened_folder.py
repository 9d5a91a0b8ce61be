"""The folder that holds all files that are opened while samples are made, and its size."""

from __future__ import annotations

import os
from time import monotonic
from typing import Any

MAX_WALK_S = 0.5
"""A folder that cannot be walked in this time has too many files to be copied at a program's start."""


class OpenedFolder:
    """Notes the files that are opened."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._num_files = 0

    def note(self, name: Any) -> None:
        """Note one opened file."""
        if not isinstance(name, (str, bytes, os.PathLike)):
            return
        folder = os.path.dirname(os.path.abspath(os.fsdecode(name)))
        self._num_files += 1
        self._folder = folder if self._folder is None else _common(self._folder, folder)

    def value(self) -> dict[str, Any] | None:
        """Return the folder and what it holds; None: nothing was opened."""
        if self._folder is None or self._folder == os.sep:
            return None
        return {"path": self._folder, "opened": self._num_files, "bytes": _size(self._folder)}


def _common(first: str, second: str) -> str:
    return first if first == second else os.path.commonpath([first, second])


def _size(folder: str) -> int | None:
    """Return the bytes of all files below; None: there are too many."""
    end, size, todo = monotonic() + MAX_WALK_S, 0, [folder]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    else:
                        size += entry.stat().st_size
        except OSError:
            continue
        if monotonic() > end:
            return None
    return size
