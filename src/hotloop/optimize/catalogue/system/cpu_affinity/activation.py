"""The activation of cpu_affinity: threads and loader workers on processors of their own."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from hotloop.machine.host.kernel_list import as_list, physical_cores, usable
from hotloop.probe.activation.knob import Knob

TASKS = Path("/proc/self/task")


class Placement:
    """Which processors the training process and its loader workers get.

    Args:
        cores: `physical`: one hardware thread of each core, for loader workers, too, as `taskset` binds them; `apart`:
            workers have cores of their own; `ranks`: each rank of this machine has an equal part of the cores.
        worker_cores: of `apart`.
    """

    def __init__(self, cores: str, worker_cores: int) -> None:
        known = physical_cores()
        self.workers: tuple[int, ...] = usable()
        if cores == "physical":
            self.training = self.workers = tuple(core[0] for core in known)
        elif cores == "apart":
            kept = known[: max(0, len(known) - worker_cores)]
            self.training = _flat(kept)
            self.workers = _flat(known[len(kept) :])
        else:
            self.training = self.workers = _flat(_part_of_rank(known))


class Affinity(Knob):
    """Pins the threads of this process, and of the loader workers that it starts.

    Args:
        cores: see `Placement`.
        worker_cores: likewise.
        at_once: from the start; else when it is switched.
    """

    settle_steps = 2

    def __init__(self, cores: str, worker_cores: int, *, at_once: bool) -> None:
        self._place = Placement(cores, worker_cores)
        self._before = usable()
        self._sets_threads = cores == "apart"
        self._num_threads: int | None = None
        self._at_once = at_once
        self._is_on = False
        self._refused = ""

    def on_torch(self) -> None:
        """Pin what is there; threads that are started later are pinned as those that start them."""
        if self._at_once:
            self.switch(True)

    def on_loader(self, keywords: dict[str, Any]) -> dict[str, Any]:
        """Let workers begin on their own processors: they are started by a thread that is pinned."""
        if not self._at_once or not keywords.get("num_workers") or not self._place.training:
            return keywords
        inner = keywords.get("worker_init_fn")
        if isinstance(inner, _Placed):  # of a framework that makes the loader anew from its arguments
            return keywords
        return {**keywords, "worker_init_fn": _Placed(inner, self._place.workers)}

    def switch(self, on: bool) -> None:
        """Pin the threads of this process and the processes that it has started, or let them go."""
        self._is_on = on
        if not self._place.training:
            self._refused = "too few cores are left for this process"
            return
        _pin(_tasks(TASKS), self._place.training if on else self._before)
        for child in _children():
            _pin(_tasks(Path(f"/proc/{child}/task")), self._place.workers if on else self._before)
        if self._sets_threads:
            self._set_threads(on=on)

    def _set_threads(self, *, on: bool) -> None:
        """Compute with as many threads as there are processors left."""
        import torch

        if on:
            self._num_threads = torch.get_num_threads()
            torch.set_num_threads(min(self._num_threads, len(self._place.training)))
        elif self._num_threads is not None:
            torch.set_num_threads(self._num_threads)

    def effect(self) -> tuple[bool, str]:
        """Return whether every thread of the process runs where it should."""
        if self._refused:
            return False, self._refused
        wanted = self._place.training if self._is_on else self._before
        astray = [task for task in _tasks(TASKS) if not _runs_within(task, wanted)]
        said = f"all threads on processors {as_list(self._place.training)}"
        if self._place.workers != self._place.training:
            said += f", loader workers on {as_list(self._place.workers)}"
        if astray:
            return False, f"{len(astray)} threads run elsewhere than on {as_list(wanted)}"
        return self._place.training != self._before, said


class _Placed:
    """The start of a loader worker; pickled where workers are spawned."""

    def __init__(self, inner: Any, cores: Collection[int]) -> None:
        self._inner = inner
        self._cores = tuple(cores)

    def __call__(self, worker: int) -> None:
        os.sched_setaffinity(0, self._cores)
        if self._inner is not None:
            self._inner(worker)


def _part_of_rank(cores: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    rank, world = (
        int(os.environ.get(name, default)) for name, default in (("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1))
    )
    each = len(cores) // world
    return cores[rank * each : (rank + 1) * each]


def _flat(cores: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))


def _tasks(folder: Path) -> list[int]:
    try:
        return [int(task.name) for task in folder.iterdir()]
    except OSError:
        return []


def _children() -> list[int]:
    found: list[int] = []
    for task in _tasks(TASKS):
        try:
            found += map(int, (TASKS / str(task) / "children").read_text().split())
        except OSError:  # a thread that has ended, or a kernel that does not list them
            continue
    return found


def _pin(tasks: Iterable[int], cores: Collection[int]) -> None:
    for task in tasks:
        try:
            os.sched_setaffinity(task, cores)
        except ProcessLookupError:  # it has ended meanwhile
            continue


def _runs_within(task: int, cores: Collection[int]) -> bool:
    try:
        return os.sched_getaffinity(task) <= set(cores)
    except ProcessLookupError:
        return True
