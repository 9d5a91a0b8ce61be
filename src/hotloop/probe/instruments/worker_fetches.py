"""When DataLoader workers make batches, while the operators are looked at.

Each batch made within the window is two numbers, appended to a file of the worker: it may be ended at any time.
"""

from __future__ import annotations

import os
from array import array
from time import monotonic_ns

from hotloop.probe.control.control_page import DEEP
from hotloop.probe.frameless import Timed
from hotloop.probe.probe import Probe
from hotloop.probe.sections import Section


def install(probe: Probe, number: int) -> None:
    """Let workers that are started from now on look, when instrument `number` is wanted."""
    from torch.utils.data._utils import worker

    def enter() -> bool:
        with probe.survive("worker"):
            _Fetches(probe, number).install()
        return False  # nothing is to be done when the worker ends

    worker._worker_loop = Timed(worker._worker_loop, Section(enter, _nothing))


def _nothing() -> None:
    """Nothing is left to do."""


class _Fetches:
    """The batches that this worker makes."""

    def __init__(self, probe: Probe, number: int) -> None:
        assert probe.page is not None
        self._probe = probe
        self._numbers = probe.page.numbers
        self._number = number
        self._begin_ns = 0
        self._descriptor = -1

    def install(self) -> None:
        """Mark the making of a batch."""
        from torch.utils.data._utils import fetch

        marks = Section(self._begins, self._ends)
        for cls in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
            cls.fetch = Timed(vars(cls)["fetch"], marks)

    def _begins(self) -> bool:
        wanted = bool(self._numbers[DEEP] == self._number)
        if wanted:
            self._begin_ns = monotonic_ns()
        return wanted

    def _ends(self) -> None:
        with self._probe.survive("worker"):
            os.write(self._file(), array("q", (self._begin_ns, monotonic_ns())).tobytes())

    def _file(self) -> int:
        if self._descriptor < 0:
            folder = self._probe.folder
            assert folder is not None
            path = folder / f"fetches-{os.getppid()}-{os.getpid()}.bin"
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        return self._descriptor
