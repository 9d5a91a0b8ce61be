"""Host samples of DataLoader workers, while the training process is sampled.

A worker looks at the control page when it is asked for a batch; only while host samples are wanted does it start a
thread. It costs nothing otherwise, and nothing at all where no worker is.
"""

from __future__ import annotations

from typing import Any

from hotloop.probe.control.control_page import DEEP
from hotloop.probe.frameless import Before
from hotloop.probe.instruments.in_workers import watch_workers, write_result
from hotloop.probe.instruments.sampler import Sampler
from hotloop.probe.probe import Probe

NAME = "worker"
KEEP_EVERY = 64
"""Fetches after which what was seen is written: a worker may be ended at any time."""


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
        self._sampler: Sampler | None = None
        self._fetches = 0

    def install(self) -> None:
        """Look at the page when a batch is asked for."""
        from torch.utils.data._utils import fetch

        for cls in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            self._patch(cls)

    def end(self) -> None:
        """Write what was seen."""
        if self._sampler is None:
            return
        value = self._sampler.value()
        times = [sample[0] for sample in value["samples"]]
        write_result(self._probe, NAME, min(times, default=0), max(times, default=0), value)

    def _patch(self, cls: Any) -> None:
        numbers, number = self._numbers, self._number

        def asked(_: Any) -> None:
            if numbers[DEEP] == number:
                with self._probe.survive(NAME):
                    self._look()

        cls.fetch = Before(vars(cls)["fetch"], asked)

    def _look(self) -> None:
        self._fetches += 1
        if self._sampler is None:
            self._sampler = Sampler(goes_on=self._wanted, at_end=self.end)
            self._sampler.start()
        elif self._fetches % KEEP_EVERY == 0:
            self.end()

    def _wanted(self) -> bool:
        return bool(self._numbers[DEEP] == self._number)
