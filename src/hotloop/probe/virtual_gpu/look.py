"""The program as it is, for longer than three steps: evaluation, longer batches, and what grows."""

from __future__ import annotations

import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hotloop.probe.virtual_gpu.replay import WORKSPACE, alive_at, summed
from hotloop.probe.virtual_gpu.storages import Storages
from hotloop.probe.virtual_gpu.training import Training

SETTLED = 3
"""Steps after which the same is alive at the end of every step, unless something grows."""
MIN_STEPS = 8
"""Ends of steps that growth is read from."""


class Look:
    """Follows the peak over many steps.

    Args:
        seconds: after the first step, how long at most; a whole epoch with the evaluation after it is enough.
        storages: what is allocated.
        training: tells steps.
        workspace: bytes of cuBLAS's workspace.
    """

    def __init__(self, seconds: float, storages: Storages, training: Training, workspace: int) -> None:
        self._seconds = seconds
        self._storages = storages
        self._training = training
        self._until: float | None = None
        self.num_epochs: Callable[[], int] = int
        self._at_ends: list[int] = []
        """Bytes allocated at the end of each step."""
        self._settled_at: int | None = None
        """Storages made until then are no growth."""
        storages.allocator.allocate(WORKSPACE, workspace)

    def after_step(self) -> bool:
        """Note the end of a step; return whether it has been long enough."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._seconds
        self._at_ends.append(self._storages.allocator.allocated)
        if len(self._at_ends) == SETTLED:
            self._settled_at = len(self._storages.records)
        enough = self.num_epochs() > 0 and len(self._at_ends) >= SETTLED + MIN_STEPS
        return enough or now >= self._until

    def report(self) -> dict[str, Any]:
        """Return what was seen by now."""
        storages, allocator = self._storages, self._storages.allocator
        at = storages.peak_at
        made = storages.records[storages.events[at][0]] if storages.events else None
        return {
            "num_steps": len(self._at_ends),
            "peak_allocated_bytes": allocator.peak_allocated,
            "peak_reserved_bytes": allocator.peak_reserved,
            "step": storages.peak_step + 1,
            "phase": made.phase if made is not None else "",
            "line": made.line if made is not None else None,
            "held": summed(alive_at([], storages.events, at), storages.records, self._training.class_of),
            "grows_bytes": self._grows(),
            "growing_line": self._growing_line(),
            "sizes": self._training.input_sizes,
            "num_epochs": self.num_epochs(),
        }

    def _grows(self) -> float | None:
        """Return bytes a step, where more is alive at the end of every step than of the one before; None: not so."""
        ends = self._at_ends[SETTLED:]
        differences = [after - before for before, after in itertools.pairwise(ends)]
        grows = len(ends) >= MIN_STEPS and min(differences) > 0
        return statistics.median(differences) if grows else None

    def _growing_line(self) -> str | None:
        """Return the line that made most of what was made since and is still alive."""
        lines: dict[str, int] = defaultdict(int)
        for number in self._storages.live():
            if self._settled_at is not None and number >= self._settled_at:
                record = self._storages.records[number]
                lines[record.line or ""] += record.num_bytes
        return max(lines, key=lambda line: lines[line], default=None) or None
