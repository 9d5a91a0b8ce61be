"""A copy of a remote folder on a local disk that fills while the program runs."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hotloop.launch.isolation.scratch import new_scratch, remove, scratch_root, sweep
from hotloop.model.errors import HotloopError
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.remover import remove_when_all_have_ended

READ_BYTES = 4 << 20
"""Of one read: a mount asks for as much at once as it can (NFS: up to 1 MiB) where it is asked for more."""
LARGEST_BYTES = 256 << 20
"""A larger file is read in pieces by who opens it; a copy of the whole would be waited for."""
_PARTIAL = ".fetched-"


class FetchedFolder:
    """Files of a folder, each copied whole when it is first opened, or before that by threads.

    A copy has the time stamp of its original, by which it is known in every process. A file that has changed since is
    copied again.

    Args:
        folder: the program's.
        max_share: of the free space of the local disk that the copy may take.
        num_threads: that copy files ahead.

    Raises:
        CannotKeep: the folder is not there, or there is no place for a copy.
    """

    def __init__(self, folder: str, max_share: float, num_threads: int) -> None:
        self._folder = os.path.abspath(folder)
        self._calls = (os.open, os.read, os.write, os.close)
        """Before anything else stands in their places."""
        if not os.path.isdir(self._folder):
            raise CannotKeep(f"the folder {folder} is not there")
        try:
            root = scratch_root()
        except HotloopError as error:
            raise CannotKeep(str(error)) from error
        sweep(root)
        self._floor = (1.0 - max_share) * shutil.disk_usage(root).free
        self._copy = str(new_scratch("remote", root=root))
        self._kept_by = remove_when_all_have_ended(Path(self._copy))
        self._ended = threading.Event()
        self._files = self._all_files()
        self._next = threading.Lock()
        self._threads = [threading.Thread(target=self._fetch_ahead, daemon=True) for _ in range(num_threads)]
        for thread in self._threads:
            thread.start()
        atexit.register(self.end, os.getpid())

    @property
    def said(self) -> str:
        """What and where the copy is, for people."""
        sizes = [
            os.path.getsize(os.path.join(at, name))
            for at, _, names in os.walk(self._copy)
            for name in names
            if _PARTIAL not in name
        ]
        return f"a local copy of {self._folder}, {len(sizes)} files, {sum(sizes) / 2**20:.3g} MiB"

    def instead_of(self, name: Any) -> str | None:
        """Return the copy of a file, made now where there is none; None: the original is to be opened."""
        if not isinstance(name, (str, bytes, os.PathLike)):
            return None
        whole = os.path.abspath(os.fsdecode(name))
        if not whole.startswith(self._folder + os.sep):
            return None
        return self._fetched(whole)

    def end(self, owner: int) -> None:
        """Remove the copy, in the process that made it."""
        if os.getpid() != owner:  # a forked worker ends with the same list of what to do
            return
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=5.0)
        remove(Path(self._copy))
        if self._kept_by is not None:
            os.close(self._kept_by)
            self._kept_by = None

    def _fetch_ahead(self) -> None:
        while not self._ended.is_set():
            with self._next:
                name = next(self._files, None)
            if name is None:
                return
            self._fetched(name)

    def _all_files(self) -> Iterator[str]:
        for at, _, names in os.walk(self._folder):
            yield from (os.path.join(at, name) for name in names)

    def _fetched(self, name: str) -> str | None:
        """Return the copy of a file; None: it is too large, no ordinary file, or there is no space."""
        copy = os.path.join(self._copy, os.path.relpath(name, self._folder))
        try:
            status = os.lstat(name)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
                return None
            if _is_of(copy, status):
                return copy
            if shutil.disk_usage(self._copy).free - status.st_size < self._floor:
                return None
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            partial = f"{copy}{_PARTIAL}{os.getpid()}-{threading.get_ident()}"
            self._copied(name, partial)
            os.utime(partial, ns=(status.st_mtime_ns, status.st_mtime_ns))
            if not _is_of(name, status) or not _is_of(partial, status):  # it changed meanwhile
                os.unlink(partial)
                return None
            os.rename(partial, copy)
        except OSError:
            return None
        return copy

    def _copied(self, name: str, to: str) -> None:
        opened, read, write, close = self._calls
        source = opened(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            target = opened(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                while (data := read(source, READ_BYTES)) and not self._ended.is_set():
                    while data:
                        data = data[write(target, data) :]
            finally:
                close(target)
        finally:
            close(source)


def _is_of(name: str, status: os.stat_result) -> bool:
    """Whether a file has the size and the time stamp of another one."""
    try:
        own = os.lstat(name)
    except OSError:
        return False
    return (own.st_mtime_ns, own.st_size) == (status.st_mtime_ns, status.st_size)
