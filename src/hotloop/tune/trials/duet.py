"""The real executor: arms are processes that alternate on the same device, all but one of them frozen."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from hotloop.launch.isolation.decide import Isolation
from hotloop.model.tuning import Contention, Failure, FailureKind
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import (
    ArmRecord,
    BudgetOver,
    SetFailed,
    SetOrder,
    SetRecord,
    Steer,
    SwitchOrder,
    SwitchRecord,
)
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.arm_processes import ArmProcesses
from hotloop.tune.trials.detailed_look import detailed_look
from hotloop.tune.trials.device_memory import DeviceBudget
from hotloop.tune.trials.device_neighbours import SHORTEST_LOOK_S, watch_devices
from hotloop.tune.trials.ranks import port_is_taken
from hotloop.tune.trials.setting import Setting
from hotloop.tune.trials.switching import switch_knobs
from hotloop.tune.trials.turns import Turn, block_times, is_late, undisturbed
from hotloop.tune.trials.void_blocks import ContentionWatch
from hotloop.tune.trials.whole_processes import WholeProcesses

WAIT_SHARE = 0.1
"""Of the time that is left, at most, that a set waits for others to leave."""


class _Course(msgspec.Struct):
    """A set under way."""

    arms: list[Arm] = []
    failures: dict[int, Failure] = {}
    rounds: list[tuple[float, ...]] = []
    aside: list[int] = []
    """Rounds beside busy neighbours, or with an evaluation or a new epoch in all turns of an arm."""
    noisy: list[int] = []
    """Those beside busy neighbours."""
    interrupted: bool = False
    """Whether the round under way has such a break."""
    records: dict[int, ArmRecord] = {}
    contention: Contention = Contention(num_blocks=0, num_void=0)
    start_s: float = 0.0
    look_s: float = 0.0
    wait_s: float = 0.0


_Time = TypeVar("_Time")


class _TimeOver(Exception):  # noqa: N818 - an end, not an error
    """The time ended within a round, which is left out: it says nothing of the arm that was under way."""


class DuetExecutor:
    """Runs sets of arms on this machine.

    Args:
        setting: what the arms share.
        blocks: the shape of a trial.
        progress: told of what is done.
        left_s: the time that is left; what hangs is not waited for beyond it.
        watch: makes what watches the machine during a set; None: this machine and the setting's devices.
        device_budget: the memory of the devices; None: of this machine's.
        crew: handles the arms; None: processes of this machine.
    """

    def __init__(
        self,
        setting: Setting,
        blocks: Blocks,
        progress: Callable[[str], None],
        left_s: Callable[[], float] = lambda: math.inf,
        watch: Callable[[Callable[[str], None], int], ContentionWatch] | None = None,
        device_budget: DeviceBudget | None = None,
        crew: ArmProcesses | None = None,
    ) -> None:
        self._setting = setting
        self._blocks = blocks
        self._crew = crew or ArmProcesses(setting, blocks, left_s)
        self._progress = progress
        self._left_s = left_s
        self._quiet_wait_s = setting.quiet_wait_s
        self._open = contextlib.ExitStack()
        self._neighbours = self._open.enter_context(watch_devices(setting.devices))
        self._watch = watch or (lambda say, num: ContentionWatch(say, num, device=self._neighbours))
        self._cramped = False
        """Whether an arm beside another had too little of a device's memory, and was slow for it."""
        self._device_budget = device_budget or DeviceBudget(setting.devices)
        self._whole = WholeProcesses(
            self._crew, blocks, self._device_budget, left_s, lambda num: self._watch(progress, num)
        )

    @property
    def isolation(self) -> Isolation:
        """What arms are kept from."""
        return self._setting.isolation

    def fits(self, num_arms: int) -> bool:
        """Whether so many arms have room beside one another."""
        num_alive = len(self._crew.alive)
        if num_arms + num_alive > 1 and (self._setting.one_at_a_time or self._cramped):
            return False
        return self._crew.fits(num_arms) and self._device_budget.fits(num_arms, num_alive)

    def run(self, order: SetOrder, steer: Steer) -> SetRecord | SetFailed:
        """Run a set of fresh processes.

        Arms that have no room beside one another run as whole processes, one at a time; so do those that ran out of
        memory beside others, before a candidate is blamed for it, and those whose allocator had to give memory back and
        ask again: that waits for the device, and is slow only where memory is short.
        """
        if not self.fits(len(order.plans)):
            self._progress(
                "copies of your program have no room beside one another: whole processes take turns"
            )
            return self._whole.run(order)
        began = time.monotonic()
        course = self._beside(order, steer)
        if any(_for_want_of_room(one) for one in course.failures.values()):
            self._progress(
                "no room beside others (memory, or a fixed port): each copy of your program again, alone"
            )
            return self._alone(order, began)
        if any(record.num_alloc_retries for record in course.records.values()):
            self._cramped = True
            self._progress(
                "a device's memory ran short beside another copy (allocator retries): each copy again, alone"
            )
            return self._alone(order, began)
        return self._recorded(course)

    def _alone(self, order: SetOrder, began: float) -> SetRecord | SetFailed:
        """Run the arms again one at a time; what was in vain is no part of what such a set takes."""
        in_vain_s = time.monotonic() - began
        found = self._whole.run(order)
        return found if isinstance(found, SetFailed) else msgspec.structs.replace(found, wait_s=in_vain_s)

    def _beside(self, order: SetOrder, steer: Steer) -> _Course:
        began = time.monotonic()
        watchman = self._watch(self._progress, order.max_rounds)
        course = _Course()
        try:
            self._crew.start_all(order, course.arms, lambda at, work: self._guarded(course, at, work))
            course.start_s = time.monotonic() - began
            course.wait_s = self._wait_for_quiet(watchman, order)
            self._rounds(course, order, steer, watchman)
            course.contention = watchman.report()
            course.records = {
                at: self._crew.record(arm)
                for at, arm in enumerate(course.arms)
                if at not in course.failures or course.rounds
            }
            self._look(course, order)
            return course
        finally:
            self._crew.end(course.arms)

    def _wait_for_quiet(self, watchman: ContentionWatch, order: SetOrder) -> float:
        """Wait for others to leave, until that was in vain once; return the seconds."""
        limit_s = min(self._quiet_wait_s, WAIT_SHARE * self._left_s())
        if order.passive or limit_s <= 0:
            return 0.0
        began = time.monotonic()
        if not watchman.wait_for_quiet(limit_s):
            self._quiet_wait_s = 0.0
        return time.monotonic() - began

    def _look(self, course: _Course, order: SetOrder) -> None:
        """Look at the original and the plan in detail, where there is time for it."""
        if order.look_left_s is None or self._left_s() < order.look_left_s or not course.rounds:
            return
        began = time.monotonic()
        for at in (0, len(course.arms) - 1):
            if at in course.records and at not in course.failures:
                self._progress(f"detailed profiling {'of the plan' if at else 'of the program as it is'}")
                try:
                    deep = detailed_look(course.arms[at], lambda _: None, order.look_left_s / 2)
                except Exception as error:  # a proof is not lost over a picture of it
                    self._progress(f"detailed profiling failed: {error}")
                    continue
                course.records[at] = msgspec.structs.replace(course.records[at], deep=deep)
        course.look_s = time.monotonic() - began

    def switch(self, order: SwitchOrder, enough: Callable[[SwitchRecord], bool]) -> SwitchRecord:
        """Switch knobs within one process."""
        return switch_knobs(
            order,
            self._setting,
            self._blocks,
            self._progress,
            enough,
            self._neighbours,
            self._crew.compiled,
        )

    def _rounds(self, course: _Course, order: SetOrder, steer: Steer, watchman: ContentionWatch) -> None:
        on: Collection[int] = range(len(course.arms))
        while len(course.rounds) < order.max_rounds:
            on = [at for at in (steer(course.rounds) if course.rounds else on) if at not in course.failures]
            if len(on) < 2 or 0 not in on:
                return
            self._progress(f"block {len(course.rounds) + 1} of at most {order.max_rounds}")
            noisy, left = watchman.num_noisy, order.max_rounds - len(course.rounds)
            backwards = len(course.rounds) % 2 == 1
            try:
                times = self._watched_round(course, on, backwards, watchman, left)
            except _TimeOver:
                return
            if 0 in course.failures or all(math.isnan(spent) for spent in times[1:]):
                return
            if watchman.num_noisy > noisy:
                course.noisy.append(len(course.rounds))
            if watchman.num_noisy > noisy or course.interrupted:
                course.aside.append(len(course.rounds))
            course.rounds.append(times)

    def _watched_round(
        self, course: _Course, on: Collection[int], backwards: bool, watchman: ContentionWatch, left: int
    ) -> tuple[float, ...]:
        """Run a round, repeated where others were busy; of a device each block, where its driver can tell of one."""
        if self._setting.devices and self._blocks.turn_s >= SHORTEST_LOOK_S:
            return self._round(
                course, on, backwards, lambda arm: self._crew.watched_turn(arm, watchman, left)
            )
        spare = min(self._crew.spare_blocks(course.arms[at], left) for at in on)
        return watchman.block(
            lambda: self._round(course, on, backwards, self._crew.turn), course.arms[0].run.pid, spare
        )

    def _round(
        self, course: _Course, on: Collection[int], backwards: bool, block: Callable[[Arm], float]
    ) -> tuple[float, ...]:
        """Give every arm its turns, in order and backwards, so that drift hits all alike."""
        turns: dict[int, list[Turn]] = {at: [] for at in on}
        began, usual_s = time.monotonic(), self._blocks.turns * len(on) * self._blocks.turn_s
        for number in range(self._blocks.turns):
            if number and self._left_s() <= 0:
                break
            if is_late(number, time.monotonic() - began, usual_s):
                break
            for at in sorted(on, reverse=backwards == (number % 2 == 0)):
                self._check_time(course)
                spent = self._guarded(course, at, block) if at not in course.failures else None
                turns[at].append(Turn(math.nan if spent is None else spent, course.arms[at].interrupted))
        # A worker that is late makes single steps long, and those are the plan's own.
        waits = any(step.params.get("num_workers") for arm in course.arms for step in arm.plan)
        typical = self._blocks.typical and not waits
        course.interrupted = self._blocks.trains and not undisturbed(turns)
        times = block_times(turns, typical=typical, trains=self._blocks.trains)
        return tuple(times.get(at, math.nan) for at in range(len(course.arms)))

    def _check_time(self, course: _Course) -> None:
        """End a round whose set says enough without it, and a set that says nothing yet and is far too late."""
        if len(course.rounds) >= MIN_BLOCKS and self._left_s() <= 0:
            raise _TimeOver
        if self._left_s() < -self._setting.grace_s:
            raise BudgetOver("the time was over before the set gave anything")

    def _guarded(self, course: _Course, at: int, work: Callable[[Arm], _Time]) -> _Time | None:
        """Return what an arm gave, or note how it failed; the others go on without it."""
        try:
            return work(course.arms[at])
        except ArmFailed as failed:
            if failed.timed_out and self._left_s() <= 0:
                if len(course.rounds) < MIN_BLOCKS:
                    raise BudgetOver(failed.failure.message) from failed
                raise _TimeOver from failed
            course.failures[at] = failed.failure
            return None

    def _recorded(self, course: _Course) -> SetRecord | SetFailed:
        told = len(course.rounds) >= MIN_BLOCKS
        # A program that came to its own end after enough blocks has not failed.
        failures = {
            at: failure
            for at, failure in course.failures.items()
            if not (told and failure.kind is FailureKind.ENDED and math.isfinite(course.rounds[-1][at]))
        }
        if 0 in failures:
            return SetFailed(failures[0])
        return SetRecord(
            rounds=tuple(course.rounds),
            arms=tuple(failures.get(at) or course.records[at] for at in range(len(course.arms))),
            contention=course.contention,
            start_s=course.start_s,
            look_s=course.look_s,
            wait_s=course.wait_s,
            aside=tuple(course.aside),
            noisy=tuple(course.noisy),
        )

    def close(self) -> None:
        """End all arms."""
        self._crew.close()
        self._open.close()


def _for_want_of_room(failure: Failure) -> bool:
    """Whether an arm may have failed because others were there."""
    is_short = failure.kind is FailureKind.OUT_OF_MEMORY and not failure.over_limit
    return is_short or port_is_taken(failure.log_end)
