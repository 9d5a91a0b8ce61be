"""How long threads were ready to run and had no core: what neighbours took of a program, and it of itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def run_delays(pids: Iterable[int], proc: Path = Path("/proc")) -> dict[tuple[int, int], float]:
    """Return the seconds that each thread has waited for a core so far, by process and thread.

    From /proc/PID/task/TID/schedstat, whose fields sched-stats.rst of the kernel's documentation gives: time on a core,
    time on a run queue, both in nanoseconds. Empty where the kernel keeps none: then all fields are zero.
    """
    found: dict[tuple[int, int], float] = {}
    ran = 0
    for pid in pids:
        folder = f"{proc}/{pid}/task"
        try:
            threads = os.listdir(folder)
        except OSError:  # it has gone
            continue
        for thread in threads:
            try:
                with open(f"{folder}/{thread}/schedstat", encoding="ascii") as file:
                    on_core, waited, *_ = map(int, file.read().split())
            except (OSError, ValueError):
                continue
            ran += on_core
            found[pid, int(thread)] = waited * 1e-9
    return found if ran else {}
