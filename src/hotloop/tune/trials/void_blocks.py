"""Blocks that a neighbour disturbed are void and repeated."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from hotloop.machine.environment.contention import ForeignLoad, others_share
from hotloop.model.quantities import duration
from hotloop.model.tuning import Contention
from hotloop.stats.quietness import BUSY, is_busy
from hotloop.tune.trials.device_neighbours import DeviceNeighbours

MAX_REPEATS = 1
VOID_SHARE = 0.2
"""Of a set's blocks at most: a machine that never becomes quiet gets wider intervals, and keeps its budget."""
WAIT_FOR_QUIET_S = 1.0
"""After a void block the machine is given so long to become quiet before the next try."""
LOOK_S = 0.25
_Time = TypeVar("_Time")


class ContentionWatch:
    """Watches the machine while blocks run.

    Args:
        progress: told when a block is repeated.
        num_blocks: of the set.
        load: takes the snapshots.
        device: looks at the devices; None: the program uses none, or their driver cannot be asked.
        pause: sleeps.
    """

    def __init__(
        self,
        progress: Callable[[str], None],
        num_blocks: int,
        load: ForeignLoad | None = None,
        pause: Callable[[float], None] = time.sleep,
        device: DeviceNeighbours | None = None,
    ) -> None:
        self._device = device
        self._progress = progress
        self._load = load or ForeignLoad()
        self._pause = pause
        self._max_void = max(1, int(VOID_SHARE * num_blocks))
        self._blocks = self._void = 0
        self.num_noisy = 0
        """Blocks kept although others were busy."""
        self._most: float | None = None

    def block(self, run: Callable[[], _Time], pid: int, spare: int = MAX_REPEATS) -> _Time:
        """Return what a block gave, repeated while others were busy; at last it is kept as noisy.

        Args:
            run: runs it.
            pid: of the program, whose time is not others'.
            spare: blocks that the program has left beyond those it was asked for.
        """
        ours = (os.getpid(), pid)
        for repeat in range(MAX_REPEATS + 1):
            before = self._load.snapshot(ours)
            result, disturbed = self._device.during(run, pid) if self._device else (run(), None)
            after = self._load.snapshot(ours)
            self._blocks += 1
            share = others_share(before, after)
            if share is not None and is_busy(share):
                self._most = max(share, self._most or 0.0)
                disturbed = f"other processes used {share:.0%} of the CPU"
            if disturbed is None:
                return result
            if repeat < min(MAX_REPEATS, spare) and self._void < self._max_void:
                self._void += 1
                self._progress(f"repeating a block ({disturbed})")
                self._wait(ours, WAIT_FOR_QUIET_S, BUSY / 2)
            else:
                break
        self.num_noisy += 1
        return result

    def wait_for_quiet(self, limit_s: float) -> bool:
        """Wait while others are busy, so long at most; return whether they have left.

        What a program does beside them is not what it does alone.
        """
        said = f"waiting up to {duration(limit_s)} for other processes to leave the CPU"
        return self._wait((os.getpid(),), limit_s, BUSY, said)

    def _wait(self, ours: tuple[int, ...], limit_s: float, quiet: float, said: str = "") -> bool:
        waited = 0.0
        while waited < limit_s:
            before = self._load.snapshot(ours)
            self._pause(LOOK_S)
            waited += LOOK_S
            share = others_share(before, self._load.snapshot(ours))
            if share is None or share <= quiet:
                return True
            if said:
                self._progress(said)
                said = ""
        return False

    def report(self) -> Contention:
        """Return what others did."""
        return Contention(
            num_blocks=self._blocks,
            num_void=self._void,
            num_noisy=self.num_noisy,
            max_foreign_share=self._most,
        )
