"""What sets of arms take, so that what is begun can be ended within the budget."""

from __future__ import annotations

import math

from hotloop.machine.host.identity import num_cores
from hotloop.model.observation import Observation
from hotloop.model.tuning import Failure, FailureKind
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.design.elapsed import elapsed_step_s
from hotloop.tune.executor import ArmRecord, SetOrder, SetRecord

SWITCH_S = 0.03
"""Of a turn: an arm is thawed, reaches its boundary, is frozen, and its records are read (85-95% of the time was
timed with blocks of 80 ms on five programs)."""
BLOCK_TO_PAIR = 2.0
"""Standard deviation of the log ratio of one block, over that between pairs of processes: of a program of 3 ms a step
1.5 (3% and 2%) as long as the machine was quiet, 2.5 (15% and 6%) in the minutes after that."""

AGAIN = 0.25
"""Of what the first start of compiled code takes, the next ones, with warm caches: 4 to 5 s of 24 on a small GPT."""


class Costs:
    """Seconds of sets: expected from the observation first, learned from the sets then.

    Args:
        start_s: of one arm, alone, up to its first step.
        round_s: of one arm's block.
        num_cores: that start-ups share.
        turns: of a block.
        warm_s: of one arm's first steps; arms take them one after the other.
    """

    def __init__(
        self, start_s: float, round_s: float, num_cores: int = 2, turns: int = 1, warm_s: float = 0.0
    ) -> None:
        self._start_s = start_s
        self._warm_s = warm_s
        self._round_s = round_s + SWITCH_S * turns
        self._cores = max(1, num_cores)
        self._learned = False

    def learn(self, order: SetOrder, record: SetRecord, seconds: float) -> None:
        """Take what a set took; one-off costs (compilation) are no other set's, nor is waiting for them in vain."""
        arms = len(order.plans)
        if _waited_in_vain(order, record) or not (record.rounds or record.start_s):
            return  # an arm that failed alone says neither what starts nor what rounds take
        start_s = max(0.1, record.start_s - _one_off_s(record)) / arms
        finite = sum(math.isfinite(spent) for times in record.rounds for spent in times)
        blocks = max(1, finite + record.contention.num_void * arms)
        turns_s = (seconds - record.start_s - record.look_s - record.wait_s) / blocks
        round_s = max(SWITCH_S, turns_s) if record.rounds else self._round_s
        # What was learned before counts half: one set beside a neighbour does not set the rule.
        share = 0.5 if self._learned else 1.0
        self._warm_s = 0.0  # it is part of what was learned
        self._start_s += share * (start_s - self._start_s)
        self._round_s += share * (round_s - self._round_s)
        self._learned = True

    def start_s(self, num_arms: int) -> float:
        """Return what so many arms take until they are warm."""
        if self._learned:
            return num_arms * self._start_s
        return self._start_s * max(1.0, num_arms / self._cores) + self._warm_s * num_arms

    def set_s(self, num_arms: int, rounds: int, one_off_s: float = 0.0) -> float:
        """Return what a whole set takes."""
        return self.start_s(num_arms) + num_arms * rounds * self._round_s + one_off_s

    def rounds_in(self, seconds: float, num_arms: int, one_off_s: float = 0.0) -> int:
        """Return how many rounds of a set fit."""
        left = seconds - self.start_s(num_arms) - one_off_s
        return max(0, int(left / (num_arms * self._round_s)))

    def telling_rounds(self, num_arms: int) -> int:
        """Return the rounds of a set after which the same time tells more in fresh processes.

        The size of a cluster in two-stage sampling (Cochran 1977, Sampling Techniques, 10.6).
        """
        return round(BLOCK_TO_PAIR * math.sqrt(self.start_s(num_arms) / (num_arms * self._round_s)))


def _waited_in_vain(order: SetOrder, record: SetRecord) -> bool:
    """Whether what takes long to begin did not: how long the others took to start is not known then."""
    return any(
        isinstance(arm, Failure) and arm.kind is FailureKind.LATE and any(step.one_off_s for step in plan)
        for arm, plan in zip(record.arms, order.plans, strict=True)
    )


def _one_off_s(record: SetRecord) -> float:
    """Return what the first steps of the arms took beyond those of the arm that was fastest with them.

    As measured: an arm that was expected to compile for a minute, and did not, took no minute.
    """
    first = [
        arm.first_steps_s
        for arm in record.arms
        if isinstance(arm, ArmRecord) and arm.first_steps_s is not None and math.isfinite(arm.first_steps_s)
    ]
    return sum(first) - len(first) * min(first, default=0.0)


def expected_costs(observation: Observation, blocks: Blocks) -> Costs:
    """Return what sets are expected to take before one was run.

    Args:
        observation: with the step that arms are expected to take.
        blocks: that they run.
    """
    step_s = elapsed_step_s(observation)
    return Costs(
        start_s=observation.run.startup_s,
        round_s=blocks.per_block() * step_s,
        turns=blocks.turns,
        num_cores=num_cores(),
        warm_s=blocks.warm_steps * step_s,
    )
