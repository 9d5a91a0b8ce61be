"""CPU use of other processes during a measurement.

A block of a comparison is void when foreign processes had more than about 10% of the machine: with spinning
OpenMP barriers a busy neighbour does not cost its share, it costs a factor of 5 to 25.

Processor time is taken from the kernel's counters, in ticks of 10 ms, so an interval below a tenth of a
second says nothing. A process counts as ours if it is one of the roots, descends from one, belongs to the
session of one, or was ours at an earlier look (so that children that outlive their parent stay ours).
"""

import os
from pathlib import Path

import msgspec

from hotloop.machine.host import cgroup
from hotloop.machine.host.processes import ProcessTime, descendants, read_processes

_MIN_TICKS = 20
"""With fewer, one tick is more than 5% of the interval: half of the 10% that voids a block."""
_BUSY_FIELDS = (0, 1, 2, 5, 6)
"""user, nice, system, irq, softirq of /proc/stat; guest time is inside user, iowait is idle."""
_STEAL_FIELD = 7
_COUNTED_FIELDS = 8


class LoadSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's counters at one moment; two of them make an interval."""

    total_ticks: int | None
    """Of all cores this process may use; None: there is no /proc."""
    busy_ticks: int
    steal_ticks: int
    """Time the hypervisor gave to other guests."""
    processes: dict[int, ProcessTime]
    """Every process that could be read, by pid."""
    ours: frozenset[int]
    throttled_s: float | None
    """How long the cgroup's quota has held this group back so far."""
    thermal_events: int | None
    """How often cores have slowed down for heat so far; None: not told (virtual machines, AMD)."""


class ForeignLoad:
    """Takes snapshots and remembers which processes were ours.

    Args:
        proc: where the process file system is mounted.
        cores: the cores that count; those this process may use, unless told.
    """

    def __init__(self, proc: Path = Path("/proc"), cores: frozenset[int] | None = None) -> None:
        self._proc = proc
        self._cores = cores
        self._known: frozenset[tuple[int, int]] = frozenset()

    def snapshot(self, pids: tuple[int, ...] = ()) -> LoadSnapshot:
        """Return the counters now; `pids` are the roots of our process trees.

        Pass `os.getpid()` where everything this process started is ours. Processes that vanish while they
        are read are left out; stopped ones are read like any other.
        """
        processes = read_processes(self._proc)
        ours = _ours(processes, frozenset(pids), self._known)
        self._known = frozenset((pid, processes[pid].start_ticks) for pid in ours)
        ticks = _machine_ticks(self._proc, self._cores if self._cores is not None else _allowed())
        return LoadSnapshot(
            total_ticks=sum(ticks[:_COUNTED_FIELDS]) if ticks else None,
            busy_ticks=sum(ticks[field] for field in _BUSY_FIELDS) if ticks else 0,
            steal_ticks=ticks[_STEAL_FIELD] if ticks else 0,
            processes=processes,
            ours=ours,
            throttled_s=cgroup.throttled_s(self._proc.parent),
            thermal_events=_thermal_events(self._proc.parent),
        )


def foreign_share(before: LoadSnapshot, after: LoadSnapshot) -> float | None:
    """Return the share of the machine's processor time that went to processes that are not ours, 0 to 1.

    Interrupts count as foreign. None where it was not measured: no /proc, or an interval below a tenth of a
    second. Time of ours that no process of ours collected (a child nobody waited for) between its last
    snapshot and its end is not known and counts as foreign.
    """
    total = _total(before, after)
    if total is None:
        return None
    foreign = (after.busy_ticks - before.busy_ticks) - own_ticks(before, after)
    return min(1.0, max(0.0, foreign / total))


def steal_share(before: LoadSnapshot, after: LoadSnapshot) -> float | None:
    """Return the share of the interval in which the hypervisor ran somebody else, 0 to 1; None as above."""
    total = _total(before, after)
    return None if total is None else max(0.0, (after.steal_ticks - before.steal_ticks) / total)


def others_share(before: LoadSnapshot, after: LoadSnapshot) -> float | None:
    """Return the share that other processes and other machines of the hypervisor had, 0 to 1; None as above."""
    foreign, steal = foreign_share(before, after), steal_share(before, after)
    return None if foreign is None or steal is None else min(1.0, foreign + steal)


def throttled_s(before: LoadSnapshot, after: LoadSnapshot) -> float | None:
    """Return how long the cgroup's quota held this group back within the interval."""
    if before.throttled_s is None or after.throttled_s is None:
        return None
    return max(0.0, after.throttled_s - before.throttled_s)


def own_ticks(before: LoadSnapshot, after: LoadSnapshot) -> int:
    """Return the processor time of our processes within the interval, ended children included.

    A waited-for child's time moves into its parent's children time; what was already counted of that child in
    `before` is taken off there, so that nothing counts twice.
    """
    collected = _ended_by_survivor(before, after)
    ticks = 0
    for pid in after.ours:
        now, was = after.processes[pid], _same(before, after.processes[pid])
        if was is None:
            ticks += now.own_ticks + now.children_ticks
        else:
            reaped = now.children_ticks - was.children_ticks - collected.get(pid, 0)
            ticks += now.own_ticks - was.own_ticks + max(0, reaped)
    return ticks


def foreign_processes(
    before: LoadSnapshot, after: LoadSnapshot, limit: int = 3
) -> tuple[tuple[ProcessTime, float], ...]:
    """Return the busiest foreign processes still alive, each with its share of the machine, busiest first."""
    total = _total(before, after)
    if total is None:
        return ()
    shares = [
        (process, (process.own_ticks - was.own_ticks) / total)
        for pid, process in after.processes.items()
        if pid not in after.ours and (was := _same(before, process)) is not None
    ]
    shares = [(process, share) for process, share in shares if share > 0]
    return tuple(sorted(shares, key=lambda pair: -pair[1])[:limit])


def _total(before: LoadSnapshot, after: LoadSnapshot) -> int | None:
    if before.total_ticks is None or after.total_ticks is None:
        return None
    total = after.total_ticks - before.total_ticks
    return total if total >= _MIN_TICKS else None


def _same(snapshot: LoadSnapshot, process: ProcessTime) -> ProcessTime | None:
    """The process in another snapshot; a pid that was given out again is another process."""
    other = snapshot.processes.get(process.pid)
    return other if other is not None and other.start_ticks == process.start_ticks else None


def _ended_by_survivor(before: LoadSnapshot, after: LoadSnapshot) -> dict[int, int]:
    """Ticks in `before` of our processes that have ended, by the nearest ancestor that has not."""
    ended: dict[int, int] = {}
    for pid in before.ours:
        process = before.processes[pid]
        if _same(after, process) is not None:
            continue
        ancestor = before.processes.get(process.parent)
        while ancestor is not None and _same(after, ancestor) is None:
            ancestor = before.processes.get(ancestor.parent)
        if ancestor is not None:
            ended[ancestor.pid] = ended.get(ancestor.pid, 0) + process.own_ticks + process.children_ticks
    return ended


def _ours(
    processes: dict[int, ProcessTime], roots: frozenset[int], known: frozenset[tuple[int, int]]
) -> frozenset[int]:
    marked = (
        pid
        for pid, process in processes.items()
        if pid in roots or process.session in roots or (pid, process.start_ticks) in known
    )
    return descendants(processes, marked)


def _allowed() -> frozenset[int] | None:
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _machine_ticks(proc: Path, cores: frozenset[int] | None) -> list[int] | None:
    """The counters of /proc/stat summed over the cores; None where there are none."""
    try:
        lines = (proc / "stat").read_text().splitlines()
    except OSError:
        return None
    rows = [line.split() for line in lines if line.startswith("cpu") and line[3:4].isdigit()]
    counted = [row[1:] for row in rows if cores is None or int(row[0][3:]) in cores]
    if not counted:
        return None
    return [sum(int(row[field]) for row in counted) for field in range(_COUNTED_FIELDS)]


def _thermal_events(root: Path) -> int | None:
    files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    counts = [int(file.read_text()) for file in files]
    return sum(counts) if counts else None
