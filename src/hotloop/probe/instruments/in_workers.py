"""Loader workers are looked at in their own processes: how a watch gets there, and how its result comes back."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.record.result_file import result_path, write_result_file
from hotloop.probe.sections import Section


class Watch(Protocol):
    """Looks at one worker, in it."""

    def install(self) -> None:
        """Look at the control page from now on."""

    def end(self) -> None:
        """The worker goes: write what was seen."""


def watch_workers(probe: Probe, name: str, make: Callable[[], Watch]) -> None:
    """Let a watch begin and end with each loader worker that is started from now on.

    Args:
        probe: survives what a watch raises.
        name: of the instrument.
        make: called in the worker.
    """
    from torch.utils.data._utils import worker

    watches: list[Watch] = []

    def enter() -> bool:
        with probe.survive(name):
            watch = make()
            watch.install()
            watches.append(watch)
        return bool(watches)

    def leave() -> None:
        with probe.survive(name):
            watches.pop().end()

    worker._worker_loop = Timed(worker._worker_loop, Section(enter, leave))


def write_result(probe: Probe, name: str, begin_ns: int, end_ns: int, value: dict[str, Any]) -> None:
    """Write what was seen in this worker, whole or not at all."""
    if probe.folder is None:
        return
    result = {
        "name": name,
        "pid": os.getpid(),
        "rank": None,
        "steps": 0,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "value": {**value, "parent": os.getppid()},
        "error": None,
    }
    write_result_file(result_path(probe.folder, name, os.getpid()), result)
