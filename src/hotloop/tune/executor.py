"""What runs trials: the real one starts processes, the one of the tests draws from a known truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import msgspec

from hotloop.model.deep import Deep
from hotloop.model.learned import Learned
from hotloop.model.optimization import Candidate, Effect
from hotloop.model.tree_memory import TreeMemory
from hotloop.model.tuning import Contention, Failure, FailureKind
from hotloop.stats.pairs import telling

PlanSteps = tuple[Candidate, ...]
"""Optimizations that are on together, in order; empty: the program as it is."""
Rounds = Sequence[Sequence[float]]
"""Seconds a step of each arm, round by round; NaN from where an arm was ended."""
Steer = Callable[[Rounds], Collection[int]]
"""Given the rounds so far, the arms that go on; fewer than two: it is enough."""


def plan_key(plan: PlanSteps) -> str:
    """Return a plan as one word: its steps' labels."""
    return "+".join(step.label for step in plan)


class SetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A set of fresh processes to run beside one another, all of them held but one.

    Attributes:
        plans: what is on in each arm.
        max_rounds: rounds at most; each gives every arm one block.
        perturbed: arms with rounding noise on their parameters.
        num_perturbed: such arms in earlier sets: every one draws noise of its own.
        limited: arms that have to stay within the user's limit of memory (`--fit`) while they run.
        passive: all arms wait passively at barriers, so that a neighbour costs a share and not a factor.
        look_left_s: when its rounds are over the first and the last arm are looked at in detail, if so much time is
            left then; None: they are not.
        keep_s: of the time that is left, what is kept for a proof: no arm is waited for in it.
        ready_s: seconds after which an arm that is not warm is left out; None: as long as the time that is left allows.
    """

    plans: tuple[PlanSteps, ...]
    max_rounds: int
    perturbed: tuple[int, ...] = ()
    num_perturbed: int = 0
    limited: tuple[int, ...] = ()
    passive: bool = False
    look_left_s: float | None = None
    keep_s: float = 0.0
    ready_s: float | None = None


class ArmRecord(Learned, frozen=True, kw_only=True, tag="arm"):
    """What one arm did."""

    step_s: float
    loss_sites: tuple[int, ...] = ()
    """The place of the backward call of each loss, by number; empty: there is one."""
    effects: tuple[Effect, ...] = ()
    peak_bytes: int | None = None
    peak_method: str = ""
    """How the peak was measured; empty: as the observation's."""
    tree_peak: TreeMemory | None = None
    """Of all its processes together, on the host."""
    num_alloc_retries: int = 0
    """Since it was warm, how often an allocator had to give a device's memory back and ask again; each waits for the
    device."""
    first_steps_s: float | None = None
    """Start-up and warm-up together."""
    phases: dict[str, float] = msgspec.field(default_factory=dict)
    """Seconds of each phase of a step, which add up to it; empty: not measured."""
    deep: Deep | None = None
    """What detailed profiling saw when its rounds were over; None: it was not looked at."""


class SetRecord(msgspec.Struct, frozen=True, kw_only=True, tag="measured"):
    """What a set did: seconds a step of every arm, round by round; an arm that failed says how."""

    rounds: tuple[tuple[float, ...], ...]
    arms: tuple[ArmRecord | Failure, ...]
    contention: Contention
    start_s: float = 0.0
    """Until all arms had warmed up."""
    look_s: float = 0.0
    """What detailed profiling took."""
    aside: tuple[int, ...] = ()
    """Rounds that say little of the step, by number: others were busy, or each turn had an evaluation or a new epoch in
    it."""
    noisy: tuple[int, ...] = ()
    """Those of them in which others were busy."""
    wait_s: float = 0.0
    """Waited for others to leave."""

    def log_ratios(self, before: Sequence[int], after: int) -> tuple[float, ...]:
        """Return log(time of the arms `before` / time of the arm `after`), round by round.

        Several arms of the same plan count with their geometric mean.
        """
        ratios = (
            sum(math.log(times[at]) for at in before) / len(before) - math.log(times[after])
            for times in telling(self.rounds, self.aside)
        )
        return tuple(ratio for ratio in ratios if math.isfinite(ratio))

    def memory_gain(self, before: Sequence[int], after: int) -> float | None:
        """Return log(peak of the arms `before` / peak of the arm `after`); None: not measured, or not alike."""
        peaks = [peak for at in before if (peak := self.peak(at)) is not None]
        mine = self.peak(after)
        if mine is None or not peaks or len({method for _, method in (*peaks, mine)}) > 1:
            return None
        return sum(math.log(size) for size, _ in peaks) / len(peaks) - math.log(mine[0])

    def peak(self, at: int) -> tuple[int, str] | None:
        """Return the peak of an arm in bytes, and how it was measured; None: it failed, or it was not."""
        arm = self.arm(at)
        return (arm.peak_bytes, arm.peak_method) if arm is not None and arm.peak_bytes else None

    @property
    def disturbed(self) -> bool:
        """Whether too few rounds are left without those that say little, so that all of them count."""
        return bool(self.aside) and telling(self.rounds, self.aside) is self.rounds

    @property
    def beside_others(self) -> bool:
        """Whether rounds count in which others were busy."""
        return self.disturbed and bool(self.noisy)

    def arm(self, at: int) -> ArmRecord | None:
        """Return what an arm did, or None where it failed."""
        arm = self.arms[at]
        return arm if isinstance(arm, ArmRecord) else None

    def failure(self, at: int) -> Failure | None:
        """Return how an arm failed, or None where it did not."""
        arm = self.arms[at]
        return arm if isinstance(arm, Failure) else None

    def is_late(self, at: int) -> bool:
        """Whether an arm was given up because it did not become warm in time: nothing is known of it then."""
        failure = self.failure(at)
        return failure is not None and failure.kind is FailureKind.LATE

    def same(self, order: SetOrder, plan: PlanSteps) -> tuple[int, ...]:
        """Return the arms that had this plan on and did not fail: their mean is steadier than one."""
        return tuple(at for at, on in enumerate(order.plans) if on == plan and self.arm(at) is not None)

    def originals(self, order: SetOrder) -> tuple[int, ...]:
        """Return the arms with nothing on."""
        return self.same(order, ())


class RanSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set that was run, as the session keeps it."""

    order: SetOrder
    record: SetRecord


class SetFailed(msgspec.Struct, frozen=True, tag="set failed"):
    """The original failed; the set gave nothing."""

    failure: Failure


class SwitchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One process in which knobs are switched on and off together.

    Attributes:
        base: what is on all the time.
        knobs: what is switched.
        patterns: the labels of what is on in each hold, one after the other for as long as there is time.
        limit_s: for everything, the start included.
        passive: as in a set.
        buffered: batches wait in a queue between loader workers and the step: holds are longer, and their mean counts.
    """

    base: PlanSteps
    knobs: tuple[Candidate, ...]
    patterns: tuple[tuple[str, ...], ...]
    limit_s: float
    passive: bool = False
    buffered: bool = False


class Hold(msgspec.Struct, frozen=True):
    """What was on together, and the seconds of each step."""

    on: tuple[str, ...]
    steps_s: tuple[float, ...]
    whole_s: float | None = None
    """Seconds a step with all that lies between steps (rollouts, evaluations); None: not measured."""


class SwitchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a process did whose knobs were switched.

    Attributes:
        holds: in order; the first ones of each knob alone.
        effects: whether each knob was seen to act, and the evidence, by label.
        from_start: labels of those that did not, and would if they were on from the start of a process.
        failed: why a knob could not be switched, or ended the program, by label.
        settled: steps after a switch that were not counted, by label.
        one_off_s: what the first steps with a knob took more than later ones.
        num_noisy: holds during which others were busy.
    """

    holds: tuple[Hold, ...] = ()
    effects: dict[str, tuple[bool, str]] = {}
    from_start: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    settled: dict[str, int] = {}
    one_off_s: dict[str, float] = {}
    num_noisy: int = 0


class BudgetOver(Exception):  # noqa: N818 - an outcome
    """The time was over in the middle of something that gave nothing yet."""


class Executor(Protocol):
    """Runs sets of arms, and processes whose knobs are switched."""

    def run(self, order: SetOrder, steer: Steer) -> SetRecord | SetFailed:
        """Run a set until `steer` says so or its rounds are over."""

    def switch(self, order: SwitchOrder, enough: Callable[[SwitchRecord], bool]) -> SwitchRecord:
        """Switch knobs until `enough` says so or the time is over."""

    def fits(self, num_arms: int) -> bool:
        """Whether so many arms can be alive at once."""

    def close(self) -> None:
        """End everything that is still alive."""
