"""An arm of a trial: the user's program with some optimizations on, held at step boundaries."""

from __future__ import annotations

import contextlib
import math
import time
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
import psutil

from hotloop.launch.isolation.scratch import check_space, remove
from hotloop.launch.isolation.signs import sign_of_isolation
from hotloop.launch.process import Run
from hotloop.model.learned import Learned, TrainingInvariants
from hotloop.model.observation import Anchor
from hotloop.model.optimization import Effect
from hotloop.model.quantities import byte_size
from hotloop.model.tree_memory import TreeMemory
from hotloop.model.tuning import Failure, FailureKind
from hotloop.observe.build import leading
from hotloop.observe.decode.processes import read_processes
from hotloop.observe.decode.spans import Timeline, timelines
from hotloop.observe.steps.job import phases_of
from hotloop.observe.steps.step_windows import windows
from hotloop.probe.control.control_page import (
    BLOCK_AT,
    BLOCK_NS,
    GO_UNTIL,
    INTERRUPTED,
    PID,
    STATE,
    STEPS,
    UNLIMITED,
    WAITING,
    ControlPage,
)
from hotloop.probe.memory_failure.words import NUM_LINES
from hotloop.tune.executor import PlanSteps
from hotloop.tune.trials.out_of_memory import ran_out_of_memory, refused_by_limit
from hotloop.tune.trials.tree_peak import TreePeak

POLL_S = 0.002
QUIET_SHARE = 0.9
"""Of the time that the same steps took before, nobody looks whether they are done: on two cores a look every 2 ms took
6% of one, and spinning threads wait for the one that lost its core."""


class ArmFailed(Exception):  # noqa: N818 - carries an outcome
    """The arm's program ended, or did not answer."""

    def __init__(self, arm: Arm, failure: Failure) -> None:
        super().__init__(failure.message)
        self.arm = arm
        self.failure = failure

    @property
    def timed_out(self) -> bool:
        """Whether it was given up; where the time is over that says nothing of the arm."""
        return self.failure.kind is FailureKind.TIMEOUT


class Arm:
    """A running program that takes so many steps when told to and is frozen in between.

    Args:
        run: the started command; its scratch folder holds `probe/`.
        page: its control page, with no step allowed yet.
        anchor: what ends a step.
        num_ranks: how many processes must take part before it counts as started.
        memory_limit_bytes: of all its processes together; above it the arm is ended as out of memory.
        plan: what is on in it.
        device_limit_bytes: what it may hold of a device; None: as much as there is.
        counter: number of the instrument that counts its tensors; None: it has none.
        settle_s: it waits so long at its boundary before it is frozen (see `ranks`).
    """

    def __init__(
        self,
        run: Run,
        page: ControlPage,
        anchor: Anchor,
        *,
        num_ranks: int,
        memory_limit_bytes: int | None,
        plan: PlanSteps = (),
        counter: int | None = None,
        device_limit_bytes: int | None = None,
        settle_s: float = 0.0,
    ) -> None:
        self.run = run
        self.plan = plan
        self.counter = counter
        self._device_limit_bytes = device_limit_bytes
        self._settle_s = settle_s
        self.anchor = anchor
        self.steps = 0
        self.page = page
        self._num_ranks = num_ranks
        self._memory_limit = memory_limit_bytes
        self._timelines: dict[int, Timeline] = {}
        self._advances: list[tuple[int, float]] = []
        """Steps and seconds of each time it ran; the first is its warm-up."""
        self.interrupted = False
        """Whether there was an evaluation or a new epoch when it ran last."""
        self._num_interrupted = 0
        self._early_retries = 0
        """Of the allocator, in the warm-up: libraries try kernels there that want more memory than they keep."""
        self._frozen = False
        self._least_step_s = 0.0
        """Of all times it ran; 0: it did not yet."""
        self._next_memory_check = 0.0
        self._tree_peak = TreePeak()

    @property
    def folder(self) -> Path:
        """Where the probe writes."""
        return self.run.scratch / "probe"

    def wait_for_start(self, timeout_s: float) -> None:
        """Wait until it is at its first boundary, has ended, or takes too long: `advance` says which."""
        with contextlib.suppress(ArmFailed):
            self.run.wait(lambda: self._arrived(0), timeout_s=timeout_s)

    def advance(self, num_steps: int, *, discard: int, timeout_s: float, timed: bool = True) -> float:
        """Run so many steps, then freeze; return the seconds of all but the first `discard` ones.

        Args:
            num_steps: so many.
            discard: of them, the first ones that are not timed.
            timeout_s: for all of it.
            timed: whether they count for the arm's step.

        Raises:
            ArmFailed: the program ended, hung, or took too much memory.
        """
        target = self.steps + num_steps
        self.page.numbers[BLOCK_AT] = self.steps + discard
        self.page.numbers[GO_UNTIL] = target
        if self._frozen:
            self.run.thaw()
            self._frozen = False
        began = time.monotonic()
        time.sleep(QUIET_SHARE * self._least_step_s * num_steps)
        if not self.run.wait(lambda: self._arrived(target), poll_s=POLL_S, timeout_s=timeout_s):
            raise ArmFailed(self, self._failure(timeout_s))
        if self.steps and timed:  # first steps hold imports and compilation
            self._least_step_s = min(self._least_step_s or math.inf, (time.monotonic() - began) / num_steps)
        self.steps = target
        time.sleep(self._settle_s)
        self.freeze()
        self._tree_peak.look(lambda: [process.pid for process in self.run.tree()])
        spent = self._slowest_rank_s()
        seen = max(row[INTERRUPTED] for row in self.page.rows())
        self.interrupted, self._num_interrupted = seen > self._num_interrupted, seen
        if not self._advances:
            self._early_retries = self._retries()
        if timed:
            self._advances.append((num_steps - discard, spent))
        return spent

    def let_go(self) -> int | None:
        """Let it run on without an end; return the process that speaks for it, None: it has none."""
        self.page.numbers[GO_UNTIL] = UNLIMITED
        if self._frozen:
            self.run.thaw()
            self._frozen = False
        return min((row[PID] for row in self.page.rows()), default=None)

    def freeze(self) -> None:
        """Stop it wherever it is, so that it takes nothing from the others."""
        self.run.freeze()
        self._frozen = True

    def _arrived(self, target: int) -> bool:
        self._watch_memory()
        rows = self.page.rows()
        return len(rows) >= self._num_ranks and all(
            row[STATE] == WAITING and row[STEPS] >= target for row in rows
        )

    def _watch_memory(self) -> None:
        now = time.monotonic()
        if self._memory_limit is None or now < self._next_memory_check:
            return
        self._next_memory_check = now + 0.5
        used = 0
        for process in self.run.tree():
            try:
                info = process.memory_info()
            except psutil.Error:  # it may be gone by now
                continue
            used = max(used, info.rss)
        if used > self._memory_limit:
            message = f"it used {used >> 20} MiB, more than the limit of {self._memory_limit >> 20} MiB"
            raise ArmFailed(
                self, Failure(kind=FailureKind.OUT_OF_MEMORY, message=message, log_end=self.run.log_end())
            )

    def _slowest_rank_s(self) -> float:
        return max(row[BLOCK_NS] for row in self.page.rows()) * 1e-9

    def losses(self) -> list[float]:
        """Return the losses so far of the process that has most (rank 0 among equals)."""
        return [loss for _, loss in read_losses(self.folder)]

    def learned(self) -> Learned:
        """Return what it is judged by, so far."""
        return Learned(losses=tuple(self.losses()), outputs=self.outputs(), invariants=self.invariants())

    def loss_sites(self) -> list[int]:
        """Return the place of the backward call of each loss: a GAN's are several curves."""
        return [int(site) for site, _ in read_losses(self.folder)]

    def outputs(self) -> bytes:
        """Return the sketches of what its forwards gave, of the process that has most; empty: it trains."""
        return max((path.read_bytes() for path in self.folder.glob("outputs-*.bin")), key=len, default=b"")

    def invariants(self) -> TrainingInvariants | None:
        """Return what the first training steps did, of the process that has most; None: not seen."""
        raw = [facts.get("invariants") for facts in read_processes(self.folder).values()]
        seen = msgspec.convert([one for one in raw if one], list[TrainingInvariants])
        return max(seen, key=lambda one: one.num_forwards, default=None)

    def effects(self) -> list[Effect]:
        """Return what the activations say; on only where every process that took steps says so."""
        merged: dict[str, Effect] = {}
        for facts in read_processes(self.folder).values():
            if not facts["steps"]:
                continue
            for raw in facts["effects"]:
                effect = Effect(raw["name"], raw["on"], raw["evidence"])
                known = merged.get(effect.name)
                if known is None or known.on:
                    merged[effect.name] = effect
        return list(merged.values())

    def peak_bytes(self) -> int | None:
        """Return the largest peak of any of its processes; device memory where there is some."""
        peaks = [
            facts.get("device_peak_bytes") or facts.get("host_peak_bytes")
            for facts in read_processes(self.folder).values()
            if facts["steps"]
        ]
        return max((peak for peak in peaks if peak), default=None)

    def tree_peak(self) -> TreeMemory | None:
        """Return the most that all its processes held together when they stood still; None: not measured."""
        return self._tree_peak.found

    def num_alloc_retries(self) -> int:
        """Return how often, since it was warm, an allocator had to give a device's memory back and ask again."""
        return self._retries() - self._early_retries

    def _retries(self) -> int:
        return sum(
            device.get("num_alloc_retries", 0)
            for facts in read_processes(self.folder).values()
            for device in facts.get("device_memory", ())
        )

    def step_s(self) -> float:
        """Return the seconds a step of its median block."""
        blocks = [spent / num for num, spent in self._advances[1:]]
        return median(blocks) if blocks else float("nan")

    def phases(self, first: int) -> dict[str, float]:
        """Return each phase's part of the median step, from step `first` on; empty: none was seen."""
        records = timelines(self.folder, self._timelines)
        lead = leading(records)
        if lead is None:
            return {}
        steps = {pid: windows(one, self.anchor)[first:] for pid, one in records.items()}
        found = phases_of(lead.pid, steps, records, read_processes(self.folder))
        return {phase.value: self.step_s() * one.share for phase, one in found.items() if one.share}

    def first_steps_s(self) -> float:
        """Return how long the warm-up took after the very first step, which holds the start-up: compilation is here."""
        return self._advances[0][1] if self._advances else float("nan")

    def end(self) -> None:
        """End the program, and remove what it wrote."""
        self.run.end()
        self.page.close()
        remove(self.run.scratch)

    def _failure(self, timeout_s: float) -> Failure:
        code = self.run.exit_code()
        log = self.run.log_end()
        check_space(self.run.scratch, log)
        if code is None:
            message = f"no step boundary was reached within {timeout_s:.0f} s"
            return Failure(kind=FailureKind.TIMEOUT, message=message, log_end=log)
        if code == 0:
            message = f"the program ended by itself after {self.steps} steps"
            return Failure(kind=FailureKind.ENDED, message=message, log_end=log, num_steps=self.steps or None)
        is_oom = ran_out_of_memory(code, self.run.log_end(NUM_LINES, report=True))
        limit = self._device_limit_bytes
        if is_oom and limit is not None and refused_by_limit(self.run.log_end(NUM_LINES, report=True)):
            message = f"it needs more of a device than the limit of {byte_size(limit)}"
            return Failure(kind=FailureKind.OUT_OF_MEMORY, message=message, log_end=log, over_limit=True)
        kind = FailureKind.OUT_OF_MEMORY if is_oom else FailureKind.CRASH
        sign = sign_of_isolation(log, self.run.isolation)
        message = f"the program failed with exit code {code}" + (f"; {sign}" if sign else "")
        return Failure(kind=kind, message=message, log_end=log)


def read_losses(folder: Path) -> list[tuple[float, float]]:
    """Return site and value of each loss, of the process that has most."""
    curves = []
    for path in sorted(folder.glob("losses-*.bin")):
        raw = path.read_bytes()
        curves.append(np.frombuffer(raw[: len(raw) // 16 * 16], dtype=np.float64).reshape(-1, 2))
    return [(site, loss) for site, loss in max(curves, key=len).tolist()] if curves else []
