"""Two identical processes of one program, alone and taking turns, every step timed by the probe."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
from tests.stats.recorded import Segment

from benchmarks.noise.programs import Program
from hotloop.launch.environment import probed, quiet
from hotloop.launch.isolation.decide import Isolation
from hotloop.launch.isolation.scratch import new_scratch
from hotloop.launch.process import start
from hotloop.observe.decode.spans import timelines
from hotloop.observe.steps.step_windows import boundaries
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.process.config import ProbeConfig
from hotloop.tune.trials.arm import Arm

WARM_S = 1.5
PATIENCE_S = 120.0


class Part(msgspec.Struct, frozen=True):
    """One stretch of a recording."""

    grain_s: float | None
    """How long an arm runs before the other takes over; None: the first one alone."""
    seconds: float


LONG = (Part(None, 4), Part(0.05, 4), Part(0.2, 6), Part(0.8, 10))
"""What one pair is asked for in full."""
SHORT = (Part(0.2, 5),)
"""Enough to place a pair of processes among others."""


class Recorder:
    """Records pairs of processes.

    Args:
        program: what runs.
        condition: what is said of the machine meanwhile.
        environment: put on top of ours.
    """

    def __init__(self, program: Program, condition: str, environment: Mapping[str, str]) -> None:
        self._program = program
        self._condition = condition
        self._environment = environment

    def pair(self, number: int, parts: tuple[Part, ...]) -> Iterator[Segment]:
        """Run a fresh pair through the parts."""
        arms = [self._start(), self._start()]
        try:
            for arm in arms:
                arm.advance(4, discard=1, timeout_s=PATIENCE_S)
            step_s = max(self._warm(arm) for arm in arms)
            for part in parts:
                yield self._segment(arms, number, part, step_s)
        finally:
            for arm in arms:
                arm.end()

    def _start(self) -> Arm:
        scratch = new_scratch("noise")
        folder = scratch / "probe"
        folder.mkdir()
        page = ControlPage.create(folder / "control", go_until=0)
        orders = scratch / "probe.json"
        anchor = self._program.anchor
        ProbeConfig(
            folder=str(folder),
            anchor=(anchor.kind, anchor.slot, anchor.every),
            seed=1,
            losses=True,
            lean=False,
        ).save(orders)
        environment = probed(quiet({**os.environ, **self._environment}, scratch), orders)
        with contextlib.chdir(scratch):  # type: ignore[attr-defined] # programs write to `runs/` below the current folder
            run = start(self._program.argv, environment, Isolation(), scratch, log=scratch / "log")
        return Arm(run, page, anchor, num_ranks=1, memory_limit_bytes=None)

    def _warm(self, arm: Arm) -> float:
        first = arm.advance(6, discard=1, timeout_s=PATIENCE_S) / 5
        num = max(6, min(400, round(WARM_S / first)))
        arm.advance(num, discard=1, timeout_s=PATIENCE_S)
        return float(np.median(np.diff(_step_ends(arm)[-num:])))  # a mean would hold what only the start cost

    def _segment(self, arms: list[Arm], number: int, part: Part, step_s: float) -> Segment:
        num = max(1, round((part.grain_s or part.seconds) / step_s))
        num_blocks = 1 if part.grain_s is None else 4 * max(1, round(part.seconds / part.grain_s / 4))
        turns, ends, run_s, wait_s = [], [], [], []
        for block in range(num_blocks):
            turn = (block + 1) // 2 % 2  # A B B A
            before = _scheduled(arms[turn])
            arms[turn].advance(num, discard=0, timeout_s=PATIENCE_S)
            after = _scheduled(arms[turn])
            turns.append(turn)
            run_s.append(after[0] - before[0])
            wait_s.append(after[1] - before[1])
            ends.append((arms[turn].steps - num, arms[turn].steps))
        clocks = [_step_ends(arm) for arm in arms]
        steps = [
            np.diff(clocks[turn][first - 1 : last]) for turn, (first, last) in zip(turns, ends, strict=True)
        ]
        return Segment(
            program=self._program.name,
            condition=self._condition,
            pair=number,
            grain_s=part.grain_s,
            turns=tuple(turns),
            step_s=tuple(np.asarray(block) for block in steps),
            running_s=tuple(run_s),
            waiting_s=tuple(wait_s),
        )


def _scheduled(arm: Arm) -> tuple[float, float]:
    """Seconds that the arm's threads have run, and that they have waited for a core while they could have run."""
    running = waiting = 0
    for process in arm.run.tree():
        for schedstat in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                run, wait, _ = schedstat.read_text().split()
                running, waiting = running + int(run), waiting + int(wait)
    return running / 1e9, waiting / 1e9


def _step_ends(arm: Arm) -> list[float]:
    """Return when each of its steps ended, in seconds; of the process that has most."""
    timeline = max(timelines(arm.folder, {}).values(), key=lambda one: one.num_loop_spans)
    return [timeline.spans[at].end_s for at in boundaries(timeline, arm.anchor)]
