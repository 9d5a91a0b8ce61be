"""A copy of a folder in memory, and the files that are opened there in place of the originals."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
from pathlib import Path
from typing import Any

from hotloop.launch.isolation.scratch import memory_root, new_scratch, remove, sweep
from hotloop.optimize.dataset.budget import Budget
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.remover import remove_when_all_have_ended

Stamp = tuple[int, int]
MAX_FILLED = 0.5
"""Of the file system, which is 64 MB in a container of Docker's: a worker that finds it full dies of a bus error."""


class StagedFolder:
    """Files of a folder, copied to a file system in memory.

    Args:
        folder: the program's.
        max_share: of the free memory that the copy may take.

    Attributes:
        num_bytes: of the files.

    Raises:
        CannotKeep: it is not there, does not fit, or there is no such file system.
    """

    def __init__(self, folder: str, max_share: float) -> None:
        self.num_bytes = 0
        self._folder = os.path.abspath(folder)
        root = memory_root()
        if root is None:
            raise CannotKeep("this system has no file system in memory (/dev/shm)")
        sweep(root)  # what a killed program has left takes memory, too
        files = list(_files(self._folder))
        if not files:
            raise CannotKeep(f"the folder {folder} is not there, or holds no files")
        self.num_bytes = sum(size for _, (_, size) in files)
        Budget(max_share).expect(self.num_bytes, len(files))
        free = shutil.disk_usage(root).free
        if self.num_bytes > MAX_FILLED * free:
            raise CannotKeep(
                f"{self.num_bytes / 2**30:.2g} GiB are more than half of the {free / 2**30:.2g} GiB that are free in "
                "/dev/shm, through which loader workers send their batches"
            )
        self._stamps: dict[str, Stamp] = dict(files)
        self._copy = new_scratch("ram", root=root)
        self._kept_by = remove_when_all_have_ended(self._copy)
        atexit.register(self.end, os.getpid())
        for name, _ in files:
            target = self._at(name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(name, target)

    @property
    def said(self) -> str:
        """What and where the copy is, for people."""
        return f"a copy of {self._folder} in memory, {self.num_bytes / 2**20:.3g} MiB"

    def instead_of(self, name: Any) -> str | None:
        """Return the copy of a file; None: it has none, or the file is not what was copied."""
        if not isinstance(name, (str, bytes, os.PathLike)):
            return None
        whole = os.path.abspath(os.fsdecode(name))
        stamp = self._stamps.get(whole)
        if stamp is None or _stamp(whole) != stamp:
            return None
        return self._at(whole)

    def _at(self, name: str) -> str:
        return os.path.join(self._copy, os.path.relpath(name, self._folder))

    def end(self, owner: int) -> None:
        """Remove the copy, in the process that made it."""
        if os.getpid() == owner:  # a forked worker ends with the same list of what to do
            remove(Path(self._copy))
            if self._kept_by is not None:
                os.close(self._kept_by)
                self._kept_by = None


def _files(folder: str) -> list[tuple[str, Stamp]]:
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            whole = os.path.join(at, name)
            stamp = _stamp(whole)
            if stamp is not None:
                found.append((whole, stamp))
    return found


def _stamp(name: str) -> Stamp | None:
    """Return time and size of an ordinary file."""
    try:
        status = os.lstat(name)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None
