"""The control page: a shared memory file through which the launcher holds and ends the program at step boundaries.

It is a page of 64-bit integers: a header that the launcher writes, then a row for each training process, which that
process writes. Reading one number costs 40 ns, so every boundary can look.
"""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from hotloop.probe.process.rank import rank_and_world

STOP, GO_UNTIL, BLOCK_AT, DEEP, DEEP_KIND, DEEP_SLOT, DEEP_EVERY, DEEP_MS, DEEP_HOLDS, DEEP_PERMILLE = range(
    10
)
"""Header: a flag; the number of steps each process may run; the step count at which the block that is timed begins;
the number of the instrument that is wanted (from 1; 0: none), and what ends a step for it: kind, slot, every how
many; how many milliseconds its window may take (0: the default); whether a process waits after a window for the next
instrument, so that no step of a short program is lost; which part of its usual seconds a window lasts, in thousandths
(0: all of them)."""
HEADER = 16
PID, RANK, STEPS, BLOCK_NS, STATE, LOST, DEEP_DONE, INTERRUPTED = range(8)
"""A process's row; BLOCK_NS: what the block took that ended when it was held, from and to a moment at which the device
had done all that it was given, without pauses; LOST: its records ended early (a full disk takes no other message);
DEEP_DONE: the instrument that was run last; INTERRUPTED: how many steps, when it was held last, had a forward without
gradients or the start of an epoch in them."""
ROW = 8
MAX_ROWS = 64
UNLIMITED = 1 << 60
RUNNING, WAITING, STOPPED = 0, 1, 2
SIZE = 8 * (HEADER + ROW * MAX_ROWS)


class ControlPage:
    """The page as an array of integers.

    Args:
        path: the file; made by `create`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), SIZE)
        self.numbers = memoryview(self._map).cast("q")

    @classmethod
    def create(cls, path: Path, go_until: int = UNLIMITED) -> ControlPage:
        """Make a new page."""
        path.write_bytes(bytes(SIZE))
        page = cls(path)
        page.numbers[GO_UNTIL] = go_until
        return page

    def row(self, index: int) -> tuple[int, ...]:
        """Return one process's row."""
        start = HEADER + index * ROW
        return tuple(self.numbers[start : start + ROW])

    def rows(self) -> list[tuple[int, ...]]:
        """Return the rows of the processes that have taken a step or wait for their first."""
        return [row for row in map(self.row, range(MAX_ROWS)) if row[PID]]

    def close(self) -> None:
        """Release the mapping."""
        self.numbers.release()
        self._map.close()


class Seat:
    """This process's row; taken at its first boundary.

    Args:
        page: the page.
        folder: where seats are taken, with a file made exclusively.
    """

    def __init__(self, page: ControlPage, folder: Path) -> None:
        self.numbers = page.numbers
        self.at = HEADER + ROW * _take(folder)
        rank, _ = rank_and_world()
        self.numbers[self.at + RANK] = -1 if rank is None else rank
        self.numbers[self.at + PID] = os.getpid()

    def leave(self) -> None:
        """Be gone from the page until `enter`."""
        self.numbers[self.at + PID] = 0

    def enter(self) -> None:
        """Stand on the page again."""
        self.numbers[self.at + PID] = os.getpid()

    def lost(self) -> None:
        """Say that this process's records ended early."""
        self.numbers[self.at + LOST] = 1

    def looked(self, number: int) -> None:
        """Say that an instrument was run in this process."""
        self.numbers[self.at + DEEP_DONE] = number

    def wait(self, steps: int) -> None:
        """Hold the program until it may go on; on a stop it stays here until the launcher ends the process."""
        numbers = self.numbers
        numbers[self.at + STATE] = WAITING
        while steps >= numbers[GO_UNTIL] or numbers[STOP]:
            if numbers[STOP]:
                numbers[self.at + STATE] = STOPPED
            time.sleep(0.0005)
        numbers[self.at + STATE] = RUNNING


def _take(folder: Path) -> int:
    for index in range(MAX_ROWS):
        try:
            os.close(os.open(folder / f"seat-{index}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            continue
        return index
    raise RuntimeError(f"more than {MAX_ROWS} training processes")
