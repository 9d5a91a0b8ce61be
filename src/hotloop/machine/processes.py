"""Processor time of every process, read straight from /proc.

One pass took 7.6 ms over 89 processes on a busy two-core machine: it belongs between blocks, not in a step.
"""

from pathlib import Path

import msgspec


class ProcessTime(msgspec.Struct, frozen=True, kw_only=True):
    """One process's line in /proc/PID/stat, of which proc(5) says what the fields are."""

    pid: int
    parent: int
    session: int
    start_ticks: int
    """With the pid, this names a process for good."""
    own_ticks: int
    """User and system time of all its threads."""
    children_ticks: int
    """The same of its children that have ended and were waited for, and of theirs."""
    name: str
    stopped: bool


def read_processes(proc: Path = Path("/proc")) -> dict[int, ProcessTime]:
    """Return every process that can be read, by pid; empty where there is no /proc."""
    try:
        names = [entry.name for entry in proc.iterdir() if entry.name.isdigit()]
    except OSError:
        return {}
    processes = (_read(proc / name / "stat") for name in names)
    return {process.pid: process for process in processes if process is not None}


def _read(path: Path) -> ProcessTime | None:
    """Parse one line; None for a process that has gone meanwhile.

    The name stands in parentheses and may hold spaces and parentheses itself: the fields start after the
    last one.
    """
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    pid, _, rest = text.partition(" (")
    name, _, tail = rest.rpartition(") ")
    fields = tail.split()
    if len(fields) < 20:
        return None
    return ProcessTime(
        pid=int(pid),
        parent=int(fields[1]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        own_ticks=int(fields[11]) + int(fields[12]),
        children_ticks=int(fields[13]) + int(fields[14]),
        name=name,
        stopped=fields[0] in ("T", "t"),
    )
