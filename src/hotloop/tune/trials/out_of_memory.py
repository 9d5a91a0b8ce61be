"""Whether a program ran out of memory, by how it ended and by the end of its log."""

from __future__ import annotations

import re

from hotloop.probe.memory_failure.words import says_so

KILLED = 137
"""Exit code of a process killed by signal 9: what the kernel does to the largest one when memory is short."""


def ran_out_of_memory(code: int, log_end: str) -> bool:
    """Return whether a failed program ran out of memory.

    Args:
        code: how it ended; a signal as 128 + its number.
        log_end: the last `NUM_LINES` lines of its output.
    """
    return code == KILLED or says_so(log_end)


_LIMITED = re.compile(
    r"Tried to allocate ([\d.]+) (\w+)\..*? of which ([\d.]+) (\w+) is free\..*? allowed;", re.DOTALL
)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def refused_by_limit(log_end: str) -> bool:
    """Return whether torch refused an allocation for which the device had room: a limit of the process is reached.

    Args:
        log_end: the last `NUM_LINES` lines of its output.
    """
    found = _LIMITED.search(log_end)
    if found is None:
        return False
    asked, free = (float(found[at]) * _UNITS.get(found[at + 1], 0) for at in (1, 3))
    return asked <= free
