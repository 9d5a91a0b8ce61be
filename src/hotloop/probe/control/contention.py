"""What others took of the machine during a block, seen from inside the program (Linux): 0.1 ms a look."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

MAX_SHARE = 0.10
"""Share of the CPU that others may take: `stats.quietness.BUSY`, which cannot be imported inside the program."""


class BlockContention:
    """Looks at the processor time of the machine, and at that of this process and those below it."""

    def __init__(self) -> None:
        self._per_s = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        self._cores = os.cpu_count() or 1

    def look(self) -> tuple[float, float] | None:
        """Return the clock, and the processor seconds that others have had; None: it cannot be seen here."""
        try:
            busy = _busy(Path("/proc/stat").read_text(encoding="ascii"))
            return monotonic(), (busy - _tree(os.getpid())) / self._per_s
        except (OSError, ValueError, IndexError):
            return None

    def share(self, before: tuple[float, float] | None, after: tuple[float, float] | None) -> float | None:
        """Return the share of the machine that others took between two looks, 0 to 1."""
        if before is None or after is None or after[0] <= before[0]:
            return None
        return max(0.0, (after[1] - before[1]) / ((after[0] - before[0]) * self._cores))


def _busy(stat: str) -> int:
    """User, nice, system, irq, softirq and steal of /proc/stat's first line; guests are in user already."""
    values = [int(value) for value in stat.splitlines()[0].split()[1:]]
    return sum(values[:3]) + sum(values[5:8])


def _tree(pid: int) -> int:
    """Processor time of a process, its threads and everything below it, the reaped included."""
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    )
    total = sum(int(value) for value in fields[11:15])
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text(encoding="ascii").split()
        except OSError:  # a kernel without it, or a thread that has ended
            continue
        for child in children:
            try:
                total += _tree(int(child))
            except OSError:  # it has ended meanwhile
                continue
    return total
