"""What loader workers do for a sample, while the training process is looked at for the same.

A worker looks at the control page when it is asked for a batch; it costs nothing otherwise.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic_ns
from typing import Any

from hotloop.probe.control.control_page import DEEP
from hotloop.probe.frameless import Before
from hotloop.probe.instruments.batch_parts import BatchParts
from hotloop.probe.instruments.in_workers import watch_workers, write_result
from hotloop.probe.instruments.worker_containers import WorkerContainers
from hotloop.probe.probe import Probe

NAME = "worker_loading"
WRITE_EVERY_NS = 200_000_000
"""What was seen is written so often: a worker may be ended at any time."""


def install(probe: Probe, number: int) -> None:
    """Let workers that are started from now on look, when instrument `number` is wanted."""
    watch_workers(probe, NAME, lambda: _Watch(probe, number))


class _Watch:
    """Looks at one worker, in it."""

    def __init__(self, probe: Probe, number: int) -> None:
        assert probe.page is not None
        self._probe = probe
        self._numbers = probe.page.numbers
        self._number = number
        self._parts: BatchParts | None = None
        self._containers: WorkerContainers | None = None
        self._begin_ns = self._written_ns = 0

    def install(self) -> None:
        """Look at the page when a batch is asked for."""
        from multiprocessing.queues import Queue

        # Not at the fetcher, which the window itself replaces: a batch that was made is put into the queue.
        owner: Any = Queue
        owner.put = Before(Queue.put, self._asked)

    def _asked(self, _: Any) -> None:
        wanted = self._numbers[DEEP] == self._number
        if not wanted and self._parts is None:
            return
        with self._probe.survive(NAME):
            if not wanted:
                self.end()
            elif self._parts is None:
                self._begin()
            elif monotonic_ns() - self._written_ns > WRITE_EVERY_NS:
                self._write()

    def _begin(self) -> None:
        self._begin_ns = self._written_ns = monotonic_ns()
        self._containers = WorkerContainers(_dataset())
        self._parts = BatchParts()
        self._parts.install()

    def end(self) -> None:
        """Put everything back."""
        if self._parts is not None:
            self._parts.remove()
            self._write()
            self._parts = None

    def _write(self) -> None:
        if self._parts is None:
            return
        self._written_ns = monotonic_ns()
        private = _private_bytes()  # before containers are looked at, which copies some of their pages
        value = {**self._parts.value(), "private_bytes": private}
        if self._containers is not None:
            value["containers"] = self._containers.value(value["samples"])
        write_result(self._probe, NAME, self._begin_ns, self._written_ns, value)


def _dataset() -> Any:
    from torch.utils.data import get_worker_info

    return getattr(get_worker_info(), "dataset", None)


def _private_bytes() -> int | None:
    """Return the memory that this worker shares with no other process; None: the system does not tell."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(sizes) * 1024
