"""The real executor: arms are processes that alternate on the same device, all but one of them frozen."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import psutil

from hotloop.launch.environment import own_caches, probed, quiet
from hotloop.launch.isolation.decide import Isolation, guard_orders
from hotloop.launch.isolation.scratch import new_scratch, remove
from hotloop.launch.process import start
from hotloop.model.observation import Anchor, DeviceMemory
from hotloop.model.tuning import FailureKind
from hotloop.optimize.registry import get
from hotloop.probe.control.control_page import ControlPage
from hotloop.probe.process.config import ProbeConfig
from hotloop.stats.pairs import MIN_BLOCKS
from hotloop.stats.parity import perturbation
from hotloop.tune.design.block_length import Blocks
from hotloop.tune.executor import ArmRecord, Enough, PlanSteps, SetFailed, SetOrder, SetRecord
from hotloop.tune.plan.orders import activation_orders, with_plan
from hotloop.tune.trials.arm import Arm, ArmFailed
from hotloop.tune.trials.device_memory import DeviceBudget
from hotloop.tune.trials.device_neighbours import watch_devices
from hotloop.tune.trials.void_blocks import MAX_REPEATS, ContentionWatch
from hotloop.tune.trials.whole_processes import Lived, in_abba_order

SEED = 20_250_101
"""Both arms of a pair start from it; a program that seeds for itself overrides it."""
MIN_PATIENCE_S = 60.0
STEP_PATIENCE = 30.0
"""A block may take so many times as long as expected: busy neighbours were seen to cost a factor of 25."""
MEMORY_SHARE = 0.85
"""Of the memory that was free before: an arm beyond it would push the machine into swap."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What all arms of a session share.

    Attributes:
        argv: the resolved command.
        environment: the user's.
        isolation: what arms are kept from.
        anchor: what ends a step.
        num_ranks: training processes of the command.
        step_s: of the original program, for patience.
        startup_s: from start to the first step.
        peak_bytes: of one process of an arm, on the host; None: not measured.
        devices: what one arm takes of each accelerator; empty: it runs on the CPU.
        program_seeds: that the program gave itself when it was observed.
        one_at_a_time: arms cannot be alive at once (see `tune.design.preflight`).
        stdin: a copy of what the command was given on standard input; None: nothing.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    isolation: Isolation
    anchor: Anchor
    num_ranks: int
    step_s: float
    startup_s: float
    peak_bytes: int | None
    devices: tuple[DeviceMemory, ...] = ()
    one_at_a_time: bool = False
    program_seeds: tuple[int, ...] = ()
    stdin: Path | None = None


class DuetExecutor:
    """Runs sets of arms on this machine.

    Args:
        setting: what the arms share.
        blocks: the shape of a trial.
        progress: told of what is done.
        watch: makes what watches the machine during a set; None: this machine and the setting's devices.
        device_budget: the memory of the devices; None: of this machine's.
    """

    def __init__(
        self,
        setting: Setting,
        blocks: Blocks,
        progress: Callable[[str], None],
        watch: Callable[[Callable[[str], None]], ContentionWatch] | None = None,
        device_budget: DeviceBudget | None = None,
    ) -> None:
        self._setting = setting
        self._blocks = blocks
        self._progress = progress
        self._open = contextlib.ExitStack()
        neighbours = self._open.enter_context(watch_devices(setting.devices))
        self._watch = watch or (lambda say: ContentionWatch(say, device=neighbours))
        self._device_budget = device_budget or DeviceBudget(setting.devices)
        self._free_bytes = psutil.virtual_memory().available
        self._kept: tuple[PlanSteps, Arm] | None = None
        self._arms: list[Arm] = []
        self._caches = new_scratch("caches")

    @property
    def isolation(self) -> Isolation:
        """What arms are kept from."""
        return self._setting.isolation

    def fits(self, num_arms: int) -> bool:
        """Whether so many arms have room beside one another, once the incumbent that lives on has ended."""
        if self._has_room(num_arms):
            return True
        self._end_kept()
        return self._has_room(num_arms)

    def _has_room(self, num_new: int) -> bool:
        """Whether so many arms more have room beside those that are alive."""
        peak, num_alive = self._setting.peak_bytes, len(self._arms)
        arms = num_new + num_alive
        if arms > 1 and self._setting.one_at_a_time:
            return False
        on_host = peak is None or arms * peak * self._setting.num_ranks < MEMORY_SHARE * self._free_bytes
        return on_host and self._device_budget.fits(num_new, num_alive)

    def run(self, order: SetOrder, enough: Enough) -> SetRecord | SetFailed:
        """Run a set; the first arm lives on for the next one unless all have to be fresh.

        Arms that have no room beside one another run as whole processes, one at a time; so do those that ran out of
        memory beside others, before a candidate is blamed for it.
        """
        num_arms = len(order.plans)
        kept = None if order.fresh else self._take_kept(order.plans[0], order.max_rounds)
        if num_arms > 1 and not self._has_room(num_arms - bool(kept)):
            self._discard([kept] if kept else [])
            kept = None
            if not self.fits(num_arms):
                return self._alone(order)
        record = self._run(order, enough, kept)
        if kept and isinstance(record, SetFailed) and record.arm == 0:
            # The incumbent that lived on has come to the program's end: that says nothing of the candidate.
            record = self._run(order, enough, None)
        if (
            num_arms > 1
            and isinstance(record, SetFailed)
            and record.failure.kind is FailureKind.OUT_OF_MEMORY
        ):
            self._progress("out of memory beside others: each arm again, alone")
            return self._alone(order)
        return record

    def _alone(self, order: SetOrder) -> SetRecord | SetFailed:
        """Run whole processes in ABBA order, one alive at a time."""
        self._end_kept()
        self._progress("arms have no room beside one another: whole processes take turns")
        watchman = self._watch(self._progress)
        under_way = 0

        def live(index: int, num_blocks: int) -> Lived:
            nonlocal under_way
            under_way = index
            arm = self._start(order.plans[index])
            try:
                self._warm(arm)
                blocks = [self._watched_block(arm, watchman, num_blocks - n) for n in range(num_blocks)]
                return blocks, self._record(arm, is_fresh=True)
            finally:
                self._discard([arm])

        try:
            rounds, records = in_abba_order(len(order.plans), order.max_rounds, live)
        except ArmFailed as failed:
            return SetFailed(under_way, failed.failure)
        return SetRecord(rounds=rounds, arms=records, contention=watchman.report())

    def _run(self, order: SetOrder, enough: Enough, kept: Arm | None) -> SetRecord | SetFailed:
        arms: list[Arm] = [kept] if kept else []
        rounds: list[tuple[float, ...]] = []
        watchman = self._watch(self._progress)
        try:
            self._start_all(order.plans[len(arms) :], arms)
            while len(rounds) < order.max_rounds and not (rounds and enough(rounds)):
                left = order.max_rounds - len(rounds)
                rounds.append(self._round(arms, watchman, left, backwards=len(rounds) % 2 == 1))
        except ArmFailed as failed:
            ended = failed.failure.kind is FailureKind.ENDED
            if not ended or len(rounds) < MIN_BLOCKS:
                failing = next((index for index, arm in enumerate(arms) if arm is failed.arm), 0)
                self._discard(arms)
                return SetFailed(failing, failed.failure)
        except BaseException:
            self._discard(arms)
            raise
        records = tuple(self._record(arm, arm is not kept) for arm in arms)
        lives_on = not order.fresh and arms[0].run.exit_code() is None
        if lives_on:
            self._end_kept()
            self._kept = (order.plans[0], arms[0])
        self._discard(arms[1:] if lives_on else arms)
        return SetRecord(rounds=tuple(rounds), arms=records, contention=watchman.report())

    def _start_all(self, plans: Sequence[PlanSteps], arms: list[Arm]) -> None:
        """Start an arm of each plan and add it to the others.

        On a CPU all start up side by side and wait at their first boundary. Where kernels are chosen by timing them
        they come one by one, the others frozen: what was timed beside a neighbour is not what is fastest.
        """
        one_by_one = bool(self._setting.devices) or any(_times_kernels(plan) for plan in plans)
        waiting: list[Arm] = []
        for plan in plans:
            arms.append(self._start(plan))
            if one_by_one:
                self._warm(arms[-1])
            else:
                waiting.append(arms[-1])
        for arm in waiting:
            self._warm(arm)

    def _round(
        self, arms: Sequence[Arm], watchman: ContentionWatch, left: int, *, backwards: bool
    ) -> tuple[float, ...]:
        """Give every arm one block, in order or backwards, so that drift hits both sides alike.

        Args:
            arms: all of the set.
            watchman: has blocks repeated that were disturbed.
            left: rounds to come, with this one.
            backwards: the order.
        """
        times = dict.fromkeys(range(len(arms)), 0.0)
        for index in reversed(times) if backwards else times:
            times[index] = self._watched_block(arms[index], watchman, left)
        return tuple(times.values())

    def _watched_block(self, arm: Arm, watchman: ContentionWatch, left: int) -> float:
        return watchman.block(lambda: self._block(arm), arm.run.pid, self._spare(arm, left))

    def _spare(self, arm: Arm, left: int) -> int:
        """Return the blocks that an arm may repeat before the program ends by itself."""
        most = self._blocks.max_rounds
        return MAX_REPEATS if most is None else max(0, most - self._used(arm) - left)

    def _used(self, arm: Arm) -> int:
        return (arm.steps - self._blocks.warm_steps) // self._blocks.per_block()

    def perturbed(self, num_losses: int) -> tuple[float, ...]:
        """Run the original once with rounding noise on its parameters, for as many losses."""
        arm: Arm | None = None
        try:
            arm = self._start((), perturb=perturbation("bfloat16"))
            self._warm(arm)
            while len(arm.losses()) < num_losses:
                self._block(arm)
            return tuple(arm.losses()[:num_losses])
        except ArmFailed as failed:
            ended = failed.failure.kind is FailureKind.ENDED and arm is not None
            return tuple(arm.losses()[:num_losses]) if ended and arm is not None else ()
        finally:
            self._discard([arm] if arm else [])

    def close(self) -> None:
        """End all arms."""
        self._discard(list(self._arms))
        self._kept = None
        self._open.close()
        remove(self._caches)

    def _caches_of(self, plan: PlanSteps) -> Path:
        """Compiled code of one plan: cold in its first arm, warm in its later ones, never another plan's."""
        name = hashlib.sha256("+".join(step.label for step in plan).encode()).hexdigest()[:16]
        return self._caches / name

    def _end_kept(self) -> None:
        """End the incumbent that lives on: a frozen arm keeps its memory."""
        if self._kept is not None:
            self._discard([self._kept[1]])
            self._kept = None

    def _take_kept(self, plan: PlanSteps, num_rounds: int) -> Arm | None:
        """Return the living incumbent if it is this plan and has steps left."""
        if self._kept is None:
            return None
        kept_plan, arm = self._kept
        self._kept = None
        most = self._blocks.max_rounds
        fits = most is None or self._used(arm) + num_rounds <= most
        if kept_plan == plan and arm.run.exit_code() is None and fits:
            return arm
        self._discard([arm])
        return None

    def _start(self, plan: PlanSteps, *, perturb: float = 0.0) -> Arm:
        setting = self._setting
        scratch = new_scratch("arm")
        folder = scratch / "probe"
        folder.mkdir()
        page = ControlPage.create(folder / "control", go_until=0)
        orders = scratch / "probe.json"
        ProbeConfig(
            folder=str(folder),
            anchor=(setting.anchor.kind, setting.anchor.slot, setting.anchor.every),
            activations=tuple(activation_orders(plan)),
            seed=SEED,
            program_seeds=setting.program_seeds,
            perturb=perturb,
            losses=True,
            **guard_orders(setting.isolation, scratch),
        ).save(orders)
        environment = own_caches(quiet(setting.environment, scratch), self._caches_of(plan))
        if setting.isolation.network:
            environment.update(GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo", TP_SOCKET_IFNAME="lo")
        environment.setdefault(
            "PYTHONHASHSEED", "0"
        )  # a vocabulary made of a set has another order in every process
        environment = probed(with_plan(environment, plan), orders)
        run = start(
            setting.argv, environment, setting.isolation, scratch, log=scratch / "log", stdin=setting.stdin
        )
        arm = Arm(
            run,
            page,
            setting.anchor,
            num_ranks=setting.num_ranks,
            memory_limit_bytes=int(MEMORY_SHARE * self._free_bytes),
        )
        self._arms.append(arm)
        return arm

    def _warm(self, arm: Arm) -> None:
        steps = self._blocks.warm_steps
        patience = (
            max(2 * MIN_PATIENCE_S, 5 * self._setting.startup_s)
            + STEP_PATIENCE * steps * self._setting.step_s
        )
        arm.advance(steps, discard=1, timeout_s=patience)

    def _block(self, arm: Arm) -> float:
        blocks = self._blocks
        expected = blocks.per_block() * self._setting.step_s
        patience = max(MIN_PATIENCE_S, STEP_PATIENCE * expected)
        spent = arm.advance(blocks.per_block(), discard=blocks.discard, timeout_s=patience)
        return spent / blocks.num_steps

    def _record(self, arm: Arm, is_fresh: bool) -> ArmRecord:
        return ArmRecord(
            step_s=arm.step_s(),
            phases={} if self._setting.devices else arm.phases(self._blocks.warm_steps),
            losses=tuple(arm.losses()) if is_fresh else (),
            loss_sites=tuple(arm.loss_sites()) if is_fresh else (),
            effects=tuple(arm.effects()),
            notes=tuple(arm.notes()),
            peak_bytes=arm.peak_bytes(),
            first_steps_s=arm.first_steps_s() if is_fresh else None,
        )

    def _discard(self, arms: Sequence[Arm]) -> None:
        for arm in arms:
            if arm in self._arms:
                self._arms.remove(arm)
                arm.end()


def _times_kernels(plan: PlanSteps) -> bool:
    return any(get(step.name).times_kernels(step.params) for step in plan)
