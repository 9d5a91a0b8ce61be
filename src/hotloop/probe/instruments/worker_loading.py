"""What loader workers do for a sample, while the training process is looked at for the same.

A worker looks at the control page when it is asked for a batch; it costs nothing otherwise.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic_ns
from typing import Any

import msgspec

from hotloop.probe.control.control_page import DEEP
from hotloop.probe.frameless import Before, Timed
from hotloop.probe.instruments.batch_parts import BatchParts
from hotloop.probe.probe import Probe
from hotloop.probe.sections import Section

NAME = "worker_loading"
WRITE_EVERY_NS = 200_000_000
"""What was seen is written so often: a worker may be ended at any time."""


def install(probe: Probe, number: int) -> None:
    """Let workers that are started from now on look, when instrument `number` is wanted."""
    from torch.utils.data._utils import worker

    watches: list[_Watch] = []

    def enter() -> bool:
        with probe.survive(NAME):
            watch = _Watch(probe, number)
            watch.install()
            watches.append(watch)
        return bool(watches)

    def leave() -> None:
        with probe.survive(NAME):
            watches.pop().end()

    worker._worker_loop = Timed(worker._worker_loop, Section(enter, leave))


class _Watch:
    """Looks at one worker, in it."""

    def __init__(self, probe: Probe, number: int) -> None:
        assert probe.page is not None
        self._probe = probe
        self._numbers = probe.page.numbers
        self._number = number
        self._parts: BatchParts | None = None
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
        self._parts = BatchParts()
        self._parts.install()

    def end(self) -> None:
        """Put everything back."""
        if self._parts is not None:
            self._parts.remove()
            self._write()
            self._parts = None

    def _write(self) -> None:
        """Write what was seen, whole or not at all."""
        folder = self._probe.folder
        if self._parts is None or folder is None:
            return
        self._written_ns = monotonic_ns()
        value = {**self._parts.value(), "parent": os.getppid(), "private_bytes": _private_bytes()}
        result = {
            "name": NAME,
            "pid": os.getpid(),
            "rank": None,
            "steps": 0,
            "begin_ns": self._begin_ns,
            "end_ns": self._written_ns,
            "value": value,
            "error": None,
        }
        path = folder / f"deep-{NAME}-{os.getpid()}.msgpack"
        scratch = path.with_suffix(".part")
        scratch.write_bytes(msgspec.msgpack.encode(result))
        scratch.replace(path)


def _private_bytes() -> int | None:
    """Return the memory that this worker shares with no other process; None: the system does not tell."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(sizes) * 1024
