"""Arms that have no room beside one another: whole processes, one alive at a time, in ABBA order."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import msgspec

from hotloop.model.tuning import Contention, Failure
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import ArmRecord, BudgetOver, SetFailed, SetOrder, SetRecord
from hotloop.tune.trials.arm import ArmFailed
from hotloop.tune.trials.arm_processes import ArmProcesses
from hotloop.tune.trials.device_memory import DeviceBudget
from hotloop.tune.trials.void_blocks import ContentionWatch

Lived = tuple[Sequence[float], ArmRecord]
"""Seconds a step of each block that a process ran, and what it did."""


class WholeProcesses:
    """Runs sets one process at a time.

    Args:
        crew: handles the arms.
        blocks: the shape of a trial.
        device_budget: the memory of the devices.
        left_s: the time that is left.
        watch: makes what watches the machine during so many blocks.
    """

    def __init__(
        self,
        crew: ArmProcesses,
        blocks: Blocks,
        device_budget: DeviceBudget,
        left_s: Callable[[], float],
        watch: Callable[[int], ContentionWatch],
    ) -> None:
        self._crew = crew
        self._blocks = blocks
        self._device_budget = device_budget
        self._left_s = left_s
        self._watch = watch

    def run(self, order: SetOrder) -> SetRecord | SetFailed:
        """Run a set; an arm that failed is left out.

        Raises:
            BudgetOver: the time was over before the set was.
        """
        began = time.monotonic()
        watchman = self._watch(len(order.plans) * order.max_rounds)
        under_way = num_lived = 0
        aside: set[int] = set()
        noisy: set[int] = set()

        def live(index: int, num_blocks: int) -> Lived:
            nonlocal under_way, num_lived
            under_way = index
            first = 0 if num_lived < len(order.plans) else order.max_rounds - num_blocks
            num_lived += 1
            # The memory of the process before this one is back a moment after its end.
            self._device_budget.fits(1, 0)
            arm = self._crew.start(order, index)
            try:
                self._crew.warm(arm)
                blocks = []
                for number in range(num_blocks):
                    before = watchman.num_noisy
                    blocks.append(self._crew.watched_turn(arm, watchman, num_blocks - number))
                    if watchman.num_noisy > before:
                        noisy.add(first + number)
                    elif self._blocks.trains and arm.interrupted:
                        aside.add(first + number)
                return blocks, self._crew.record(arm)
            finally:
                self._crew.end([arm])

        try:
            rounds, records = in_abba_order(len(order.plans), order.max_rounds, live)
        except ArmFailed as failed:
            if failed.timed_out and self._left_s() <= 0:
                raise BudgetOver(failed.failure.message) from failed
            if under_way == 0:
                return SetFailed(failed.failure)
            return self._without(order, under_way, failed.failure)
        spent = time.monotonic() - began
        blocks_s = sum(sum(times) for times in rounds) * self._blocks.per_turn()
        return SetRecord(
            rounds=rounds,
            arms=records,
            contention=watchman.report(),
            start_s=max(0.0, spent - blocks_s),
            aside=tuple(sorted(aside | noisy)),
            noisy=tuple(sorted(noisy)),
        )

    def _without(self, order: SetOrder, at: int, failure: Failure) -> SetRecord | SetFailed:
        """Run the set without an arm that failed, and say so in its place."""
        rest = tuple(plan for index, plan in enumerate(order.plans) if index != at)
        if len(rest) < 2:
            empty = ArmRecord(step_s=math.nan)
            return SetRecord(
                rounds=(), arms=(empty, failure), contention=Contention(num_blocks=0, num_void=0)
            )
        perturbed, limited = (
            tuple(index - (index > at) for index in indices if index != at)
            for indices in (order.perturbed, order.limited)
        )
        found = self.run(msgspec.structs.replace(order, plans=rest, perturbed=perturbed, limited=limited))
        if isinstance(found, SetFailed):
            return found
        return msgspec.structs.replace(
            found,
            rounds=tuple((*times[:at], math.nan, *times[at:]) for times in found.rounds),
            arms=(*found.arms[:at], failure, *found.arms[at:]),
        )


def in_abba_order(
    num_arms: int, num_rounds: int, live: Callable[[int, int], Lived]
) -> tuple[tuple[tuple[float, ...], ...], tuple[ArmRecord, ...]]:
    """Return the rounds, and the record of each arm's first process.

    Half of the rounds come from processes in order, half from fresh ones in the opposite order, so that a machine that
    becomes warmer or busier does the same to every arm.

    Args:
        num_arms: arms of the set.
        num_rounds: rounds wanted.
        live: starts an arm, runs so many blocks, ends it.
    """
    half = (num_rounds + 1) // 2
    there = [live(index, half) for index in range(num_arms)]
    back = [live(index, num_rounds - half) for index in reversed(range(num_arms)) if num_rounds > half]
    rounds = [*_rounds(there), *_rounds(back[::-1])]
    return tuple(rounds), tuple(record for _, record in there)


def _rounds(lived: Sequence[Lived]) -> list[tuple[float, ...]]:
    return list(zip(*(blocks for blocks, _ in lived), strict=True)) if lived else []
