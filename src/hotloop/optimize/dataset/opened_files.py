"""The files that are opened while a data set is read: those that it reads are watched for changes."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

MAX_WATCHED = 50_000
"""Looking at the time stamps of so many files took 0.1 s: more are not watched one by one."""
_LOCK = threading.Lock()
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class OpenedFiles:
    """Notes the files that this thread opens inside its `with`; Python's audit events tell, C libraries do not."""

    _current: OpenedFiles | None = None
    _installed = False

    def __init__(self) -> None:
        self._stamps: dict[str, tuple[int, int] | None] = {}
        self.written: str | None = None
        self._thread = 0

    def __enter__(self) -> OpenedFiles:  # noqa: D105
        with _LOCK:
            if not OpenedFiles._installed:
                OpenedFiles._installed = True
                sys.addaudithook(_audit)
        self._thread = threading.get_ident()
        OpenedFiles._current = self
        return self

    def __exit__(self, *_: object) -> None:  # noqa: D105
        OpenedFiles._current = None

    def note(self, path: Any, mode: Any, flags: Any) -> None:
        """Note one `open`."""
        if threading.get_ident() != self._thread or isinstance(path, int):
            return
        name = os.fspath(path)
        name = os.fsdecode(name)
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (
            isinstance(flags, int) and flags & _WRITES
        ):
            self.written = self.written or name
        elif len(self._stamps) < MAX_WATCHED and name not in self._stamps:
            self._stamps[name] = _stamp(name)

    def changed(self) -> str | None:
        """Return a file that is not as it was when it was read, None where all are."""
        return next((name for name, stamp in self._stamps.items() if _stamp(name) != stamp), None)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    current = OpenedFiles._current
    if current is not None and event == "open":
        try:
            current.note(*arguments[:3])
        except Exception:  # an audit hook that raises would fail the program's open
            OpenedFiles._current = None


def _stamp(name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
