"""The activation of openmp_wait_policy: sees whether the threads of the pool sleep at barriers."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from hotloop.probe.activation.activation import Activation

NUM_REGIONS = 50
SLEEPS_PER_REGION = 0.5
"""Measured with libgomp on two cores, also under load: 1.9 sleeps a parallel region passive, at most 0.02
spinning."""
NUM_ELEMENTS = 400_000
"""Enough for torch to split a pointwise operation between threads (its grain is 32,768 elements)."""


class BarrierSleep(Activation):
    """Counts how often the pool's threads give their core back in a burst of parallel regions.

    Args:
        variables: what must have arrived in the environment.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._seen: tuple[bool, str] | None = None

    def effect(self) -> tuple[bool, str]:
        """Return whether the threads sleep; measured once, in about 5 ms."""
        missing = [name for name, value in self._variables.items() if os.environ.get(name) != value]
        if missing:
            return False, f"{', '.join(missing)} did not arrive in the environment"
        if self._seen is None:
            self._seen = _measure()
        return self._seen


def _measure() -> tuple[bool, str]:
    import torch

    if torch.get_num_threads() == 1:
        return False, "the process computes with one thread: there is no barrier"
    if not Path("/proc/self/task").exists():
        return False, "whether threads sleep can be seen on Linux only"
    values = torch.ones(NUM_ELEMENTS)
    torch.mul(values, 1.0, out=values)  # the pool exists from here on
    before = _sleeps()
    for _ in range(NUM_REGIONS):
        torch.mul(values, 1.0, out=values)
    sleeps = (_sleeps() - before) / NUM_REGIONS
    return sleeps >= SLEEPS_PER_REGION, f"threads slept {sleeps:.1f} times a parallel region"


def _sleeps() -> int:
    """Return how often the other threads of this process gave their core back so far."""
    own = str(threading.get_native_id())
    total = 0
    for task in Path("/proc/self/task").iterdir():
        if task.name != own:
            lines = (task / "status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return total
