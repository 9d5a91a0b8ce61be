"""A loader worker that runs out of memory: torch hands its exception to the training process, and its frames go.

So it is looked at where torch wraps it, in the worker.
"""

from __future__ import annotations

import sys
from typing import Any

from hotloop.probe.frameless import Before
from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.memory_failure.report_file import lines_of_traceback, write_failure
from hotloop.probe.memory_failure.words import says_out_of_memory
from hotloop.probe.probe import Probe


def install(probe: Probe, storages: LiveStorages) -> None:
    """Look whenever a worker's exception is wrapped."""
    from torch._utils import ExceptionWrapper
    from torch.utils.data import get_worker_info

    def wrapped(_: Any) -> None:
        with probe.survive("memory failure"):
            error = says_out_of_memory(sys.exc_info()[1])
            if error is not None and get_worker_info() is not None and probe.folder is not None:
                write_failure(
                    probe.folder,
                    error,
                    lines_of_traceback(error),
                    storages,
                    storages.reserve,
                    phase="loading",
                    device="cpu",
                )

    owner: Any = ExceptionWrapper
    owner.__init__ = Before(ExceptionWrapper.__init__, wrapped)
