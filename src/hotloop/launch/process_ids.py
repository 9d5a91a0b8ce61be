"""Numbers of processes: a run with processes of its own counts them from 1; seen from here they have others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil


class ProcessIds:
    """The processes of a run under the numbers that the run itself knows.

    Args:
        tree: returns the processes that live, as they are seen from here.
    """

    def __init__(self, tree: Callable[[], Sequence[psutil.Process]]) -> None:
        self._tree = tree
        self._known: dict[int, int] = {}

    def outside(self, inside: int) -> int | None:
        """Return the number from here of the process that calls itself `inside`; None: never seen alive."""
        if inside not in self._known:
            for process in self._tree():
                own = _own_number(process.pid)
                if own is not None:
                    self._known.setdefault(own, process.pid)
        return self._known.get(inside)

    def lives(self, inside: int) -> bool:
        """Whether the process that calls itself `inside` is there."""
        pid = self.outside(inside)
        return pid is not None and psutil.pid_exists(pid)


def _own_number(pid: int) -> int | None:
    """Return what a process calls itself: the last of its numbers, the outermost namespace's first."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])
    return pid
