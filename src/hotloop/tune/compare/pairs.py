"""Fresh pairs of two programs, block by block in turns, until the verdict is clear or the time is over."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Sequence

import msgspec

from hotloop.launch.environment import own_caches, probed, quiet, with_changes
from hotloop.launch.isolation.decide import guard_orders, plan_isolation
from hotloop.launch.isolation.scratch import new_scratch, scratch_root
from hotloop.launch.process import start
from hotloop.model.errors import ExitCode, HotloopError
from hotloop.model.learned import Learned
from hotloop.model.tree_memory import TreeMemory
from hotloop.model.tuning import Failure, FailureKind
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.process.config import ProbeConfig
from hotloop.stats.pairs import MIN_BLOCKS, telling
from hotloop.stats.parity import perturbation
from hotloop.stats.verdict import Decision, decide
from hotloop.tune.compare.program import Program, inside
from hotloop.tune.design.block_length import Blocks, shape_blocks
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.start_arm import SEED
from hotloop.tune.trials.timeouts import Timeouts
from hotloop.tune.trials.turns import Turn, block_times, undisturbed
from hotloop.tune.trials.void_blocks import ContentionWatch

MIN_PAIRS, MAX_PAIRS = 3, 8
LEAST_PAIRS = 2
"""That an interval can rest on, however little time there is."""
ROUNDS = 8
"""Blocks of each program in a pair."""


class _EndedEarlyError(HotloopError):
    """A program came to its own end before enough blocks were measured; nobody had seen how long it is."""

    def __init__(self, at: int, num_steps: int, message: str) -> None:
        super().__init__(
            message, "give it more to do: more steps, more epochs, or more data", ExitCode.PROGRAM_FAILED
        )
        self._at = at
        self._num_steps = num_steps

    def reshaped(self, both: tuple[Program, Program]) -> tuple[Program, Program]:
        """Return the programs with the length that this one was seen to have.

        Raises:
            HotloopError: that was known before, and is too short.
        """
        one = both[self._at]
        if one.observation.total_steps is not None:
            raise self
        seen = msgspec.structs.replace(one.observation, total_steps=self._num_steps)
        known = msgspec.structs.replace(one, observation=seen)
        return (known, both[1]) if self._at == 0 else (both[0], known)


class PairRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one pair did."""

    rounds: tuple[tuple[float, ...], ...]
    """Seconds a step of both programs, round by round."""
    phases: tuple[dict[str, float], dict[str, float]]
    peak_bytes: tuple[int | None, int | None]
    trees: tuple[TreeMemory | None, TreeMemory | None] = (None, None)
    """The memory of all processes of both programs."""
    foreign_share: float | None = None
    """Of the machine, that others used in the most disturbed block, where most blocks were; None: in fewer."""
    learned: tuple[Learned, Learned] = (Learned(), Learned())
    """By both programs, from the same seed; without losses and outputs: not asked for."""

    def log_ratios(self, scale: float = 1.0) -> tuple[float, ...]:
        """Return log(time of the first / time of the second), round by round.

        Args:
            scale: the samples of a step of the second for each of the first.
        """
        return tuple(math.log(scale * first / second) for first, second in self.rounds)


def pairs(
    both: tuple[Program, Program],
    floor: float,
    limit_s: float,
    progress: Callable[[str], None],
    *,
    losses: bool = False,
    scale: float = 1.0,
) -> tuple[list[PairRecord], Decision]:
    """Run fresh pairs and return them with what they allow to say.

    Args:
        both: the programs.
        floor: relative difference below which nothing is claimed.
        limit_s: no pair is begun that would end after it; the first two take fewer rounds where they are slow.
        progress: told of what goes on.
        losses: whether the losses are kept.
        scale: the samples of a step of the second for each of the first.

    Raises:
        HotloopError: a program failed.
    """
    began = time.monotonic()
    records: list[PairRecord] = []
    while True:
        progress(f"pair {len(records) + 1}")
        until = began + limit_s * min(len(records) + 1, LEAST_PAIRS) / LEAST_PAIRS
        try:
            records.append(_pair(both, progress, until, losses=losses))
        except _EndedEarlyError as early:
            # It is as long as that: smaller blocks, and as many as it has.
            both = early.reshaped(both)
            records.append(_pair(both, progress, until, losses=losses))
        spent = time.monotonic() - began
        found = decide(
            [record.log_ratios(scale) for record in records],
            floor=floor,
            min_pairs=MIN_PAIRS,
            max_pairs=MAX_PAIRS,
            disturbed=[number for number, record in enumerate(records) if record.foreign_share is not None],
        )
        over = spent + spent / len(records) > limit_s and len(records) >= LEAST_PAIRS
        if over or not found.more:
            return records, found


def _pair(
    both: tuple[Program, Program], progress: Callable[[str], None], until: float, *, losses: bool
) -> PairRecord:
    shapes = [_shape(one) for one in both]
    with contextlib.ExitStack() as alive:
        arms: list[Arm] = []
        for one in both:
            arms.append(start_arm(one, losses=losses))
            alive.callback(arms[-1].end)
        rounds, foreign_share = _rounds(arms, both, shapes, progress, until)
        # On a device the host's clock tells when work was sent off, not when it was done.
        first, second = (
            {} if one.observation.memory.devices else arm.phases(shape.warm_steps)
            for one, arm, shape in zip(both, arms, shapes, strict=True)
        )
        return PairRecord(
            rounds=rounds,
            foreign_share=foreign_share,
            phases=(first, second),
            peak_bytes=(arms[0].peak_bytes(), arms[1].peak_bytes()),
            trees=(arms[0].tree_peak(), arms[1].tree_peak()),
            learned=(arms[0].learned(), arms[1].learned()),
        )


def _rounds(
    arms: Sequence[Arm],
    both: tuple[Program, Program],
    shapes: Sequence[Blocks],
    progress: Callable[[str], None],
    until: float,
) -> tuple[tuple[tuple[float, float], ...], float | None]:
    """Run blocks of the programs in turns until the number asked for is reached, a program ends, or time is over.

    Returns the seconds a step of both, and what others used of the machine where that disturbed most blocks.

    Raises:
        HotloopError: one failed, or ended too early.
    """
    rounds: list[tuple[float, float]] = []
    aside: list[int] = []
    most = min(ROUNDS, *(shape.max_rounds or ROUNDS for shape in shapes))
    watchman = ContentionWatch(progress, len(arms) * most)
    try:
        for arm, one, shape in zip(arms, both, shapes, strict=True):
            arm.advance(shape.warm_steps, discard=1, timeout_s=_patience(one, shape.warm_steps))
        while len(rounds) < most and (len(rounds) < MIN_BLOCKS or time.monotonic() < until):
            noisy = watchman.num_noisy
            times, interrupted = _round(arms, both, shapes, watchman, backwards=len(rounds) % 2 == 1)
            if interrupted or watchman.num_noisy > noisy:
                aside.append(len(rounds))
            rounds.append(times)
    except ArmFailed as failed:
        if failed.failure.kind is not FailureKind.ENDED or len(rounds) < MIN_BLOCKS:
            at = next((at for at, arm in enumerate(arms) if arm is failed.arm), 0)
            raise _explained(both[at].name, at, failed.failure) from failed
    busy = 2 * watchman.num_noisy > len(rounds)
    return tuple(telling(rounds, aside)), watchman.report().max_foreign_share if busy else None


def _explained(name: str, at: int, failure: Failure) -> HotloopError:
    message = f"{name}: {failure.message}\n{failure.log_end}".strip()
    if failure.kind is FailureKind.ENDED and failure.num_steps is not None:
        return _EndedEarlyError(at, failure.num_steps, message)
    return HotloopError(message, "it must be able to run beside the other one", ExitCode.PROGRAM_FAILED)


def perturbed(one: Program, num_losses: int) -> Learned:
    """Return so many losses of a program with rounding noise, or the outputs of a block where it trains nothing.

    There is less than was asked for where it ended or failed.
    """
    arm = start_arm(one, losses=True, perturb=perturbation("bfloat16"))
    shape = _shape(one)
    with contextlib.ExitStack() as alive:
        alive.callback(arm.end)
        with contextlib.suppress(ArmFailed):
            arm.advance(shape.warm_steps, discard=1, timeout_s=_patience(one, shape.warm_steps))
            while len(arm.losses()) < num_losses:
                arm.advance(shape.per_block(), discard=1, timeout_s=_patience(one, shape.per_block()))
        return msgspec.structs.replace(arm.learned(), losses=tuple(arm.losses()[:num_losses]))


def _round(
    arms: Sequence[Arm],
    both: tuple[Program, Program],
    shapes: Sequence[Blocks],
    watchman: ContentionWatch,
    *,
    backwards: bool,
) -> tuple[tuple[float, float], bool]:
    """Give each program its turns of a block, in order and backwards, so that drift hits both alike.

    Returns the seconds a step of both, and whether each turn of one was interrupted, which is rare for it.
    """

    def take_turns() -> tuple[tuple[float, float], bool]:
        turns: list[list[Turn]] = [[], []]
        for number in range(max(shape.turns for shape in shapes)):
            for at in (1, 0) if backwards == (number % 2 == 0) else (0, 1):
                if number < shapes[at].turns:
                    turns[at].append(_turn(arms[at], both[at], shapes[at]))
        typical = all(shape.typical for shape in shapes)
        first, second = (
            block_times({0: each}, typical=typical, trains=shape.trains)[0]
            for each, shape in zip(turns, shapes, strict=True)
        )
        interrupted = any(
            shape.trains and not undisturbed({0: each}) for each, shape in zip(turns, shapes, strict=True)
        )
        return (first, second), interrupted

    return watchman.block(take_turns, arms[0].run.pid)


def _turn(arm: Arm, one: Program, shape: Blocks) -> Turn:
    spent = arm.advance(shape.per_turn(), discard=shape.discard, timeout_s=_patience(one, shape.per_turn()))
    return Turn(spent / shape.num_steps, arm.interrupted)


def _shape(one: Program) -> Blocks:
    seen = one.observation
    return shape_blocks(seen, seen.epoch_steps, seen.total_steps).with_curve()


def _patience(one: Program, num_steps: int) -> float:
    step = one.observation.step
    assert step is not None
    return Timeouts(one.observation.run.startup_s, step.p95_s).warm_up_s((), num_steps)


def start_arm(one: Program, *, losses: bool = False, perturb: float = 0.0) -> Arm:
    """Start a program under its plan; it stands before its first step."""
    anchor = one.observation.anchor
    assert anchor is not None
    scratch = new_scratch("arm")
    folder = scratch / "probe"
    folder.mkdir()
    page = ControlPage.create(folder / "control", go_until=0)
    isolation = plan_isolation(one.argv, one.folder, scratch_root(), network=not one.observation.uses_network)
    orders = scratch / "probe.json"
    ProbeConfig(
        folder=str(folder),
        anchor=(anchor.kind, anchor.slot, anchor.every),
        activations=tuple(activation_orders(one.plan)),
        seed=SEED,
        losses=losses,
        perturb=perturb,
        **guard_orders(isolation, scratch),
    ).save(orders)
    wanted = with_plan(with_changes(os.environ, one.environment), one.plan)
    environment = probed(own_caches(quiet(wanted, scratch), scratch / "caches"), orders)
    with inside(one.folder):
        run = start(one.argv, environment, isolation, scratch, log=scratch / "log")
    return Arm(run, page, anchor, num_ranks=len(one.observation.ranks), memory_limit_bytes=None)
