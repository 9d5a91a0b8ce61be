"""Plans of one program beside one another in fresh sets, as a confirmation runs them."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec

from hotloop.launch.command import resolve
from hotloop.model.observation import Observation
from hotloop.stats.pairs import MIN_BLOCKS, ratio_interval
from hotloop.tune.executor import PlanSteps, SetOrder, SetRecord
from hotloop.tune.prepared import executor_like_a_session

SETS, ROUNDS, SLOW_ROUNDS = 3, 8, 5
SLOW_STEP_S = 0.2
"""Of such steps a round takes seconds for each plan."""
HOPELESS = 1.25
"""A plan that takes this many times as long as the first one waits after the fewest blocks that a ratio needs."""
Interval = tuple[float, float, float]
"""Ratio, low, high."""


class SideBySide:
    """What some plans took in the same sets.

    Args:
        argv: the program, run in the current folder.
        observation: of it.
        plans: the first is what the others are compared with; `()` is the program as it was.
        num_sets: of fresh processes.
    """

    def __init__(
        self, argv: Sequence[str], observation: Observation, plans: Sequence[PlanSteps], num_sets: int = SETS
    ) -> None:
        executor = executor_like_a_session(resolve(list(argv)), observation, print)
        slow = observation.step is not None and observation.step.median_s > SLOW_STEP_S
        order = SetOrder(plans=tuple(plans), max_rounds=SLOW_ROUNDS if slow else ROUNDS)
        self._hopeless: set[int] = set()
        try:
            sets = [executor.run(order, self._hopeful) for _ in range(num_sets)]
        finally:
            executor.close()
        self._records = [one for one in sets if isinstance(one, SetRecord)]

    def _hopeful(self, rounds: Sequence[Sequence[float]]) -> list[int]:
        arms = range(len(rounds[0]))
        for at in arms[1:]:
            longer = [times[at] / times[0] for times in rounds if math.isfinite(times[at] / times[0])]
            if len(longer) >= MIN_BLOCKS and median(longer) > HOPELESS:
                self._hopeless.add(at)
        return [at for at in arms if at not in self._hopeless]

    def ratio(self, before: int, after: int) -> Interval | None:
        """Return how many times as fast one plan is as another; None: too few blocks."""
        pairs = [
            record.log_ratios((before,), after)
            for record in self._records
            if record.arm(before) and record.arm(after)
        ]
        pairs = [pair for pair in pairs if len(pair) >= MIN_BLOCKS]
        return msgspec.structs.astuple(ratio_interval(pairs)) if pairs else None


@contextlib.contextmanager
def inside(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Be in a program's folder, with its environment."""
    before, here = dict(os.environ), Path.cwd()
    os.environ.update(environment)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def shown(interval: Interval | None) -> str:
    """Return an interval as text."""
    return "-" if interval is None else f"{interval[0]:.2f} [{interval[1]:.2f}, {interval[2]:.2f}]"
