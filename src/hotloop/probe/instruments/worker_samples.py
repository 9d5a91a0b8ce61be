"""Host samples of DataLoader workers, while the training process is sampled.

A worker looks at the control page when it is asked for a batch; only while host samples are wanted does it start a
thread. It costs nothing otherwise, and nothing at all where no worker is.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from hotloop.probe.control.control_page import DEEP
from hotloop.probe.frameless import Before, Timed
from hotloop.probe.instruments.sampler import Sampler
from hotloop.probe.probe import Probe
from hotloop.probe.sections import Section

NAME = "worker"
KEEP_EVERY = 64
"""Fetches after which what was seen is written: a worker may be ended at any time."""


def install(probe: Probe, number: int) -> None:
    """Let workers that are started from now on look, when instrument `number` is wanted."""
    from torch.utils.data._utils import worker

    watches: list[_Watch] = []

    def enter() -> bool:
        with probe.survive("worker"):
            watch = _Watch(probe, number)
            watch.install()
            watches.append(watch)
        return bool(watches)

    def leave() -> None:
        with probe.survive("worker"):
            watches.pop().write()

    worker._worker_loop = Timed(worker._worker_loop, Section(enter, leave))


class _Watch:
    """Looks at one worker, in it."""

    def __init__(self, probe: Probe, number: int) -> None:
        assert probe.page is not None
        self._probe = probe
        self._numbers = probe.page.numbers
        self._number = number
        self._sampler: Sampler | None = None
        self._fetches = 0

    def install(self) -> None:
        """Look at the page when a batch is asked for."""
        from torch.utils.data._utils import fetch

        for cls in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            self._patch(cls)

    def write(self) -> None:
        """Write what was seen, whole or not at all."""
        folder = self._probe.folder
        if self._sampler is None or folder is None:
            return
        value = self._sampler.value()
        times = [sample[0] for sample in value["samples"]]
        result = {
            "name": NAME,
            "pid": os.getpid(),
            "rank": None,
            "steps": 0,
            "begin_ns": min(times, default=0),
            "end_ns": max(times, default=0),
            "value": {**value, "parent": os.getppid()},
            "error": None,
        }
        path = folder / f"deep-{NAME}-{os.getpid()}.msgpack"
        scratch = path.with_suffix(".part")
        scratch.write_bytes(msgspec.msgpack.encode(result))
        scratch.replace(path)

    def _patch(self, cls: Any) -> None:
        numbers, number = self._numbers, self._number

        def asked(_: Any) -> None:
            if numbers[DEEP] == number:
                with self._probe.survive("worker"):
                    self._look()

        cls.fetch = Before(vars(cls)["fetch"], asked)

    def _look(self) -> None:
        self._fetches += 1
        if self._sampler is None:
            self._sampler = Sampler(goes_on=self._wanted, at_end=self.write)
            self._sampler.start()
        elif self._fetches % KEEP_EVERY == 0:
            self.write()

    def _wanted(self) -> bool:
        return bool(self._numbers[DEEP] == self._number)
