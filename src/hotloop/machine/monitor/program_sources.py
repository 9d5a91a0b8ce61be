"""What the processes of the observed command hold and wait for, seen from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hotloop.machine.host.processes import descendants, is_helper, read_processes
from hotloop.machine.host.run_delay import run_delays
from hotloop.machine.host.tree_memory import is_worker, own_bytes, tree_memory
from hotloop.machine.monitor.columns import Metric
from hotloop.machine.monitor.source import Sample, Source
from hotloop.model.tree_memory import RoleMemory

MAX_PROCESSES = 64
"""Of which memory is told, the first ones: each has a column as long as the run."""
LARGE_BYTES = 64 << 20
"""A process that has imported torch has more; a launcher or a shell less."""
TREE_MEMORY = "tree_memory_bytes"
WORKER_MEMORY = "worker_memory_bytes"
ROLE_FIELDS = RoleMemory.__struct_fields__
MAX_COST = 0.005
"""Of one core, for counting pages: it grows with the memory that a program maps."""


class ProgramProcesses:
    """All processes of a command, looked up now and then: every process of the machine is read for it.

    Args:
        roots: ours, below which the command runs; they, and helpers that we start, are left out.
        proc: where the process file system is mounted.
        interval_s: between two looks.
    """

    def __init__(self, roots: tuple[int, ...], proc: Path = Path("/proc"), interval_s: float = 2.0) -> None:
        self.proc = proc
        self._roots = roots
        self._interval_s = interval_s
        self._known: frozenset[int] = frozenset()
        self._looked_s = -interval_s

    def at(self, now_s: float, *, fresh: bool = False) -> frozenset[int]:
        """Return their pids; some may have gone, and new ones not be known yet unless it is a fresh look."""
        if fresh or now_s - self._looked_s >= self._interval_s:
            self._looked_s = now_s
            below = descendants(read_processes(self.proc), self._roots) - frozenset(self._roots)
            self._known = frozenset(pid for pid in below if not is_helper(pid, self.proc))
        return self._known


class ProgramMemorySource:
    """The memory of each process of ours that is large, its own alone: what it shares with others is left out."""

    def __init__(self, processes: ProgramProcesses) -> None:
        self._processes = processes
        self._told: set[int] = set()

    def sample(self, now_s: float, /) -> Sample:
        """Return bytes by process; nothing where there is no /proc."""
        known = self._processes.at(now_s)
        sizes = {
            pid: size for pid in known if (size := own_bytes(pid, self._processes.proc) or 0) >= LARGE_BYTES
        }
        for pid in sorted(sizes):  # workers that are started anew in each epoch come later
            if len(self._told) < MAX_PROCESSES:
                self._told.add(pid)
        sample = {process_memory(pid): float(size) for pid, size in sizes.items() if pid in self._told}
        workers = [size for pid, size in sizes.items() if is_worker(pid, self._processes.proc)]
        return {**sample, Metric(WORKER_MEMORY): float(sum(workers))} if workers else sample


def process_memory(pid: int) -> Metric:
    """Return the name of a process's memory."""
    return Metric("process_memory_bytes", (("pid", str(pid)),))


class TreeMemorySource:
    """The memory of all processes together, loader workers included, shared pages once.

    Looked at as rarely as `MAX_COST` asks for.
    """

    def __init__(self, processes: ProgramProcesses, clock: Callable[[], float] = time.thread_time) -> None:
        self._processes = processes
        self._clock = clock
        self._next_s = float("-inf")

    def sample(self, now_s: float, /) -> Sample:
        """Return bytes, named for how they were counted, and the number of processes; nothing between two looks."""
        if now_s < self._next_s:
            return {}
        began = self._clock()
        found = tree_memory(self._processes.at(now_s, fresh=True), self._processes.proc)
        self._next_s = now_s + (self._clock() - began) / MAX_COST
        if found is None:
            return {}
        return {
            Metric(TREE_MEMORY, (("counted", found.method),)): float(found.peak_bytes),
            Metric("tree_num_processes"): float(found.num_processes),
            **{metric: value for role, held in found.roles.items() for metric, value in _of_role(role, held)},
        }


def _of_role(role: str, held: RoleMemory) -> Iterator[tuple[Metric, float]]:
    for name in ROLE_FIELDS:
        yield role_metric(role, name), float(getattr(held, name))


def role_metric(role: str, field: str) -> Metric:
    """Return the name of a field of `RoleMemory` of a role."""
    return Metric(f"tree_role_{field}", (("role", role),))


class RunDelaySource:
    """Seconds a second in which threads of ours were ready to run and had no core, all threads together.

    No neighbour can have cost a program more of its cores than that. New threads have waited since they are there.
    """

    def __init__(self, processes: ProgramProcesses) -> None:
        self._processes = processes
        self._before: tuple[float, dict[tuple[int, int], float]] | None = None

    def sample(self, now_s: float, /) -> Sample:
        """Return the ratio since the sample before; nothing at the first call, or where the system does not tell."""
        delays = run_delays(self._processes.at(now_s), self._processes.proc)
        before, self._before = self._before, (now_s, delays)
        if before is None or not delays or now_s <= before[0]:
            return {}
        waited_s = sum(max(0.0, spent - before[1].get(thread, 0.0)) for thread, spent in delays.items())
        return {Metric("run_delay_ratio"): waited_s / (now_s - before[0])}


def program_sources(roots: tuple[int, ...]) -> list[Source]:
    """Return every source that looks at the processes below some roots."""
    processes = ProgramProcesses(roots)
    return [ProgramMemorySource(processes), TreeMemorySource(processes), RunDelaySource(processes)]
