"""The arms that are alive: started, warmed up, given their turns, and ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import psutil

from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.machine.host.identity import num_cores
from hotloop.model.tuning import Failure, FailureKind
from hotloop.observe.profile.windows import WRITING_S
from hotloop.optimize.registry import get
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import ArmRecord, PlanSteps, SetOrder
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.batch_size import num_samples
from hotloop.tune.trials.counted_memory import STEPS, count_memory, counted_peak
from hotloop.tune.trials.setting import Setting
from hotloop.tune.trials.start_arm import compiled_in, start_arm
from hotloop.tune.trials.timeouts import Timeouts
from hotloop.tune.trials.void_blocks import MAX_REPEATS, ContentionWatch

LAST_PATIENCE_S = 5.0
"""What is under way when the time is over may take so much longer."""
START_SHARE = 0.5
"""Of the time that a set has: an arm that has not started by then is left out, so that the others can be compared."""
_LATE = Failure(
    kind=FailureKind.LATE, message="it was not warm when the time that there was for its start was over"
)
MEMORY_SHARE = 0.85
"""Of the memory that was free before: an arm beyond it would push the machine into swap."""


class ArmProcesses:
    """Handles the arms of one program.

    Args:
        setting: what they share.
        blocks: the shape of a trial.
        left_s: the time that is left; what hangs is not waited for beyond it.
    """

    def __init__(self, setting: Setting, blocks: Blocks, left_s: Callable[[], float]) -> None:
        self._setting = setting
        self._blocks = blocks
        self._left_s = left_s
        self._patience = Timeouts(setting.startup_s, setting.step_s)
        self._memory_limit = int(MEMORY_SHARE * psutil.virtual_memory().available)
        self._caches = new_scratch("caches")
        self.compiled = compiled_in(self._caches)
        """Where the session keeps compiled code."""
        self.alive: list[Arm] = []

    def fits(self, num_arms: int) -> bool:
        """Whether the host's memory holds so many more."""
        peak = self._setting.peak_bytes
        needed = (num_arms + len(self.alive)) * (peak or 0) * self._setting.num_ranks
        return peak is None or needed < self._memory_limit

    def start(self, order: SetOrder, at: int) -> Arm:
        """Start one arm of a set."""
        arm = start_arm(self._setting, order, at, self._caches, self._memory_limit)
        self.alive.append(arm)
        return arm

    def start_all(
        self, order: SetOrder, arms: list[Arm], guarded: Callable[[int, Callable[[Arm], None]], object]
    ) -> None:
        """Start an arm of each plan, until all have warmed up.

        As many as there are cores start up side by side, and all wait before their first forward (eight that imported
        at once on two cores took twice the processor time). Ranks do not wait there, so where kernels are chosen by
        timing them they come one by one, the others frozen: what was timed beside a neighbour is not what is fastest.

        Args:
            order: the set.
            arms: takes them, in the set's order.
            guarded: does something with the arm at a place, and keeps how it failed.
        """
        ready_by = time.monotonic() + self._start_s(order)

        def warm(arm: Arm) -> None:
            self.warm(arm, math.inf if arm is arms[0] else ready_by)

        if self._one_by_one(order):
            for at in range(len(order.plans)):
                arms.append(self.start(order, at))
                guarded(at, warm)
            return
        at_once = num_cores()
        for at in range(len(order.plans)):
            if at >= at_once:
                self._wait_for_start(arms[at - at_once], ready_by)
            arms.append(self.start(order, at))
        for arm in arms:  # threads of a step that wait for one another lose their cores to imports
            self._wait_for_start(arm, ready_by)
        for at in range(len(order.plans)):
            guarded(at, warm)

    def _start_s(self, order: SetOrder) -> float:
        """Return the seconds after which an arm that has not started is left out.

        Of others it costs the comparison. A plan alone, without which there is none, is waited for longer, but not for
        all that is left: compilation of an unrolled LSTM took six of ten minutes, and nothing came of it.
        """
        if order.ready_s is not None:
            return order.ready_s
        left_s, plans = self._left_s(), [plan for plan in order.plans if plan]
        if len(plans) > 1:
            return START_SHARE * (left_s - order.keep_s)
        expected_s = sum(self._patience.expected_s(plan, self._blocks.warm_steps) for plan in order.plans)
        return max(left_s - order.keep_s, START_SHARE * left_s, 2 * expected_s)

    def _one_by_one(self, order: SetOrder) -> bool:
        setting = self._setting
        return setting.num_ranks > 1 and (bool(setting.devices) or any(map(times_kernels, order.plans)))

    def _wait_for_start(self, arm: Arm, ready_by: float) -> None:
        patience = self._until(self._patience.warm_up_s((), 0), ready_by)
        arm.wait_for_start(self._within_budget(patience))

    def warm(self, arm: Arm, ready_by: float = math.inf) -> None:
        """Let an arm take its first steps.

        Raises:
            ArmFailed: it did not.
        """
        steps = self._blocks.warm_steps
        patience = self._patience.warm_up_s(arm.plan, steps)
        least = self._until(patience, ready_by)
        try:
            spent = arm.advance(steps, discard=1, timeout_s=self._within_budget(least))
        except ArmFailed as failed:
            if failed.timed_out and least < patience:
                raise ArmFailed(arm, _LATE) from failed
            raise
        self._patience.warmed(arm.plan, spent)
        if arm.counter is not None:
            block_s = self._patience.block_s(STEPS)
            count_memory(arm, arm.counter, self._within_budget(block_s + WRITING_S))

    def turn(self, arm: Arm) -> float:
        """Give an arm its turn; return the seconds for as many samples as a step of the program has.

        Raises:
            ArmFailed: it ended, hung, or took too much memory.
        """
        blocks = self._blocks
        samples = num_samples(arm.plan)
        num_steps = max(1, round(blocks.num_steps / samples))
        patience = self._within_budget(samples * self._patience.block_s(blocks.discard + num_steps))
        spent = arm.advance(blocks.discard + num_steps, discard=blocks.discard, timeout_s=patience)
        return spent / num_steps / samples

    def watched_turn(self, arm: Arm, watchman: ContentionWatch, left: int) -> float:
        """Give an arm its turn, again where others were busy; return seconds a step.

        Args:
            arm: alive and warm.
            watchman: knows if others were busy.
            left: the blocks that the arm is still to run, with this one.
        """
        return watchman.block(lambda: self.turn(arm), arm.run.pid, self.spare_blocks(arm, left))

    def spare_blocks(self, arm: Arm, left: int) -> int:
        """Return the blocks that an arm may repeat before the program ends by itself."""
        most = self._blocks.max_rounds
        used = (arm.steps - self._blocks.warm_steps) // self._blocks.per_block()
        return MAX_REPEATS if most is None else max(0, most - used - left)

    def record(self, arm: Arm) -> ArmRecord:
        """Return what an arm gave."""
        counted = STEPS + 1 if arm.counter is not None else 0  # those steps are under a profiler
        peak_bytes, method = arm.peak_bytes(), ""
        if self._setting.counts_memory:
            peak_bytes, method = counted_peak(arm, on_device=bool(self._setting.devices))
        phases = {} if self._setting.devices else arm.phases(self._blocks.warm_steps + counted)
        samples = num_samples(arm.plan)
        return ArmRecord(
            step_s=arm.step_s() / samples,
            phases={name: spent / samples for name, spent in phases.items()},
            losses=tuple(arm.losses()),
            loss_sites=tuple(arm.loss_sites()),
            outputs=arm.outputs(),
            invariants=arm.invariants(),
            effects=tuple(arm.effects()),
            peak_bytes=peak_bytes,
            peak_method=method,
            tree_peak=arm.tree_peak(),
            num_alloc_retries=arm.num_alloc_retries(),
            first_steps_s=arm.first_steps_s(),
        )

    def end(self, arms: Sequence[Arm]) -> None:
        """End arms that are alive."""
        for arm in arms:
            if arm in self.alive:
                self.alive.remove(arm)
                arm.end()

    def close(self) -> None:
        """End all, and remove what they compiled."""
        self.end(list(self.alive))
        remove(self._caches)

    def _within_budget(self, wanted_s: float) -> float:
        """Nobody waits for what hangs beyond the budget."""
        return min(wanted_s, max(LAST_PATIENCE_S, self._left_s() + LAST_PATIENCE_S))

    @staticmethod
    def _until(wanted_s: float, ready_by: float) -> float:
        return min(wanted_s, max(LAST_PATIENCE_S, ready_by - time.monotonic()))


def times_kernels(plan: PlanSteps) -> bool:
    """Whether a plan chooses kernels by timing them."""
    return any(get(step.name).times_kernels(step.params) for step in plan)
