"""A machine that runs trials in no time: an executor with a known truth, and a clock that it turns."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

import msgspec
import numpy as np

from hotloop.model.observation import Anchor, Memory, Observation, RunAccount, StepTime
from hotloop.model.optimization import Candidate, Effect, Numerics
from hotloop.model.program import ProgramFacts
from hotloop.model.tuning import Contention, Failure, FailureKind
from hotloop.tune.executor import (
    ArmRecord,
    Hold,
    PlanSteps,
    SetFailed,
    SetOrder,
    SetRecord,
    Steer,
    SwitchOrder,
    SwitchRecord,
)

from ..stats.simulated import Noise

STEP_S = 0.1
STARTUP_S = 4.0
WARM_STEPS = 10
PEAK = 512 << 20
"""Of the program as it is, in bytes."""
BLOCK_STEPS, DISCARD = 4, 1
"""What `shape_blocks` makes of a step of 100 ms."""
HOLD_STEPS = 3
TURNS = 6
QUIET = Noise(pair_sd=0.0, block_sd=0.001, rho=0.0, spike_share=0.0)
Names = frozenset[str]


class Clock:
    """Seconds that pass only when somebody lets them."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        """In whole ticks of 2^-20 s, so that times add up to the same in any order."""
        self.now_s += round(seconds * 2**20) / 2**20


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """What the candidates really do, by label or name."""

    factors: Mapping[str, float] = {}
    """True speed ratio of each alone; 1 where it is not named."""
    together: Mapping[Names, float] = {}
    """What comes on top where all of these are on: above 1 they help one another."""
    switched: Mapping[str, float] = {}
    """What a switch within one process shows on top of the truth: caches, carry-over."""
    passive: Mapping[str, float] = {}
    """Instead, where threads wait passively."""
    memory: Mapping[str, float] = {}
    """Share of the peak that is left with each; 1 where it is not named."""
    ineffective: Names = frozenset()
    """Do not take effect, whatever their ratio."""
    from_start: Names = frozenset()
    """Take effect only in a process in which they are on from its start."""
    failures: Mapping[Names, FailureKind] = {}
    """Fail where all of these are on."""
    departing: Mapping[Names, float] = {}
    """The loss departs by so much, relative, where all of these are on; NaN: it diverges."""
    chaos: float = 0.0
    """So far rounding carries the logarithm of a loss, as in a game of two models."""
    one_off_s: Mapping[str, float] = {}
    room: int = 99
    """So many arms can be alive at once."""
    ends_after_steps: int | None = None
    """The program comes to its own end."""
    others_cost: float | None = None
    """Others are busy in every round, and make its steps so many times as long; None: nobody is."""
    others_sets: int = 999
    """Sets after which they leave."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a program takes: the shape of its trials, in steps and seconds."""

    step_s: float = STEP_S
    startup_s: float = STARTUP_S
    warm_steps: int = WARM_STEPS
    block_steps: int = BLOCK_STEPS
    discard: int = DISCARD
    turns: int = TURNS
    """Of which a block is the median."""
    timed_turns: int = 1
    """Of them, how many count on the clock and take steps from the program."""
    hold_steps: int = HOLD_STEPS
    again: float = 1.0
    """Share of a one-off cost that later starts with the same step pay: caches are warm."""

    @property
    def start_s(self) -> float:
        """Seconds until an arm is warm."""
        return self.startup_s + self.warm_steps * self.step_s

    @property
    def round_s(self) -> float:
        """Seconds of one arm's block."""
        return self.per_block * self.step_s

    @property
    def per_block(self) -> int:
        """Steps that a block takes from the program."""
        return self.timed_turns * (self.block_steps + self.discard)

    @property
    def hold_s(self) -> float:
        """Seconds of one hold."""
        return (self.hold_steps + 2) * self.step_s


USUAL = Shape()


class Disturbance:
    """What a machine makes of steps; this one, as its noise says."""

    def process(self) -> float:
        """How much slower a process is for as long as it lives, as a factor."""
        raise NotImplementedError

    def turns(self, num: int, steps: int) -> list[float]:
        """The mean step of each of some turns, as a factor."""
        raise NotImplementedError

    def hold(self, steps: int) -> list[float]:
        """The steps of a hold, as factors."""
        raise NotImplementedError


class SimulatedExecutor:
    """Draws what processes would have done.

    Args:
        truth: what is to be found out.
        noise: of the machine.
        clock: turned on by what runs would take.
        seed: of everything random.
        turn: a number that is the same whenever the same work is due; None: counts the runs. With it, a run
            that was lost and is run again gives what it would have given.
        before: called before every run, warm-up and block: to interrupt.
        disturbance: what the machine makes of steps; None: as the noise says.
        shape: what the program takes.
        left_s: the time that is left; None: no arm is ever too late.
    """

    def __init__(
        self,
        truth: Truth,
        noise: Noise,
        clock: Clock,
        seed: int = 0,
        *,
        disturbance: Disturbance | None = None,
        turn: Callable[[], int] | None = None,
        before: Callable[[], None] = lambda: None,
        shape: Shape = USUAL,
        left_s: Callable[[], float] | None = None,
    ) -> None:
        self.truth = truth
        self.noise = noise
        self.shape = shape
        self._left_s = left_s
        self._started: set[str] = set()
        """Names of what had its one-off cost paid before."""
        self.orders: list[SetOrder] = []
        self.switched: list[SwitchOrder] = []
        self.closed = 0
        self._clock = clock
        self._seed = seed
        self._turn = turn
        self._before = before
        self._disturbance = disturbance

    def run(self, order: SetOrder, steer: Steer) -> SetRecord | SetFailed:
        """Run a set until `steer` says so or its rounds are over."""
        self._before()
        self.orders.append(order)
        rng = self._rng("|".join("+".join(step.label for step in plan) for plan in order.plans))
        began = self._clock()
        truth = self._truth(passive=order.passive)
        ready_by = began + self._patience_s(order)
        arms = [
            self._start(plan, rng, truth, at in order.perturbed, ready_by if at else math.inf)
            for at, plan in enumerate(order.plans)
        ]
        start_s = self._clock() - began
        rounds: list[tuple[float, ...]] = []
        while len(rounds) < order.max_rounds:
            on = set(steer(rounds) if rounds else range(len(arms)))
            on = {at for at in on if isinstance(arms[at], _Process)}
            if len(on) < 2 or 0 not in on:
                break
            times = [math.nan] * len(arms)
            numbers = sorted(on, reverse=len(rounds) % 2 == 1)
            for at in numbers:
                times[at] = self._block(arms, at)
            if 0 in on and not isinstance(arms[0], _Process):
                break
            rounds.append(tuple(times))
        original = arms[0]
        if isinstance(original, Failure):
            return SetFailed(original)
        return SetRecord(
            rounds=tuple(rounds),
            arms=tuple(arm.record() if isinstance(arm, _Process) else arm for arm in arms),
            contention=Contention(
                num_blocks=len(rounds) * len(arms),
                num_void=0,
                num_noisy=len(rounds) * len(arms) if self._others_cost else 0,
                max_foreign_share=0.48 if self._others_cost else 0.02,
            ),
            start_s=start_s,
            aside=tuple(range(len(rounds))) if self._others_cost else (),
            noisy=tuple(range(len(rounds))) if self._others_cost else (),
        )

    def switch(self, order: SwitchOrder, enough: Callable[[SwitchRecord], bool]) -> SwitchRecord:
        """One process whose knobs are switched by the patterns."""
        self._before()
        self.switched.append(order)
        rng = self._rng("switch" if len(self.switched) == 1 else f"switch {len(self.switched)}")
        base = frozenset(word for step in order.base for word in (step.name, step.label))
        truth = self._truth(passive=order.passive)
        shape = self.shape
        process = _Process((), frozenset(), truth, self.noise, rng, machine=self._disturbance, shape=shape)
        end = self._clock() + order.limit_s
        self._clock.pass_by(shape.start_s + self._one_off_s(base, truth))
        labels = [knob.label for knob in order.knobs]
        failed = {label: "it fails" for label in labels if self._fails({label, label.partition("(")[0]})}
        idle = self.truth.ineffective | self.truth.from_start
        acting = [one for one in labels if one not in failed and one not in idle]
        pilot = [pattern for label in acting for pattern in ((label,), (), (label,), ())]
        holds: list[Hold] = []
        record = SwitchRecord()
        for pattern in [*pilot, *order.patterns]:
            on = tuple(label for label in pattern if label in acting)
            names = frozenset(word for label in on for word in (label, label.partition("(")[0]))
            steps = process.hold(names | base)
            self._clock.pass_by(sum(steps) + 2 * shape.step_s)
            holds.append(Hold(on, steps))
            reached = {label for hold in holds for label in hold.on}.union(set(labels) - set(acting))
            record = SwitchRecord(
                holds=tuple(holds),
                effects={
                    label: (label in acting, f"{label} was looked at") for label in labels if label in reached
                },
                from_start=tuple(label for label in labels if label in self.truth.from_start & reached),
                failed=failed,
            )
            if self._clock() >= end or enough(record) or self._is_over(len(holds)):
                break
        return record

    def fits(self, num_arms: int) -> bool:
        """As the truth says."""
        return num_arms <= self.truth.room

    def close(self) -> None:
        """Count."""
        self.closed += 1

    @property
    def _others_cost(self) -> float | None:
        """What others cost in the set under way."""
        return self.truth.others_cost if len(self.orders) <= self.truth.others_sets else None

    def _is_over(self, num_holds: int) -> bool:
        """Whether a program that ends by itself has no step left for another hold."""
        ends_after, shape = self.truth.ends_after_steps, self.shape
        return (
            ends_after is not None
            and shape.warm_steps + (num_holds + 1) * (shape.hold_steps + 2) > ends_after
        )

    def _rng(self, words: str) -> np.random.Generator:
        turn = self._turn() if self._turn else len(self.orders)
        return np.random.default_rng([self._seed, turn, zlib.crc32(words.encode())])

    def _fails(self, on: Collection[str]) -> FailureKind | None:
        return next((kind for names, kind in self.truth.failures.items() if names <= set(on)), None)

    def _truth(self, *, passive: bool) -> Truth:
        factors = {**self.truth.factors, **(self.truth.passive if passive else {})}
        return msgspec.structs.replace(self.truth, factors=factors)

    def _patience_s(self, order: SetOrder) -> float:
        """Seconds after which an arm that is not warm is left out, as the real executor does it."""
        if self._left_s is None:
            return math.inf
        ready_s = getattr(order, "ready_s", None)
        left_s, plans = self._left_s(), [plan for plan in order.plans if plan]
        if ready_s is not None:
            return float(ready_s)
        if len(plans) > 1:
            return 0.5 * (left_s - order.keep_s)
        one_off_s = sum(step.one_off_s or 0.0 for plan in plans for step in plan)
        expected_s = len(order.plans) * self.shape.start_s + one_off_s
        return max(left_s - order.keep_s, 0.5 * left_s, 2 * expected_s)

    def _one_off_s(self, on: Names, truth: Truth) -> float:
        """What the first steps with so much on take more; less when it was on before."""
        cost = 0.0
        for name, seconds in truth.one_off_s.items():
            if name in on:
                cost += seconds * (self.shape.again if name in self._started else 1.0)
                self._started.add(name)
        return cost

    def _start(
        self,
        plan: PlanSteps,
        rng: np.random.Generator,
        truth: Truth,
        perturbed: bool,
        ready_by: float = math.inf,
    ) -> _Process | Failure:
        self._before()
        on = frozenset(word for step in plan for word in (step.name, step.label))
        kind = self._fails(on)
        if kind is not None:
            self._clock.pass_by(60.0 if kind is FailureKind.TIMEOUT else self.shape.startup_s)
            return _failure(kind)
        process = _Process(
            plan,
            on,
            truth,
            self.noise,
            rng,
            perturbed=perturbed,
            machine=self._disturbance,
            shape=self.shape,
            one_off_s=self._one_off_s(on, truth),
        )
        spent_s = max(self.shape.start_s, min(process.first_steps_s, ready_by - self._clock()))
        self._clock.pass_by(spent_s)
        return process if spent_s >= process.first_steps_s else _failure(FailureKind.LATE)

    def _block(self, arms: list[_Process | Failure], at: int) -> float:
        self._before()
        arm = arms[at]
        assert isinstance(arm, _Process)
        step_s = arm.block()
        if step_s is None:
            arms[at] = _failure(FailureKind.ENDED)
            return math.nan
        step_s *= self._others_cost or 1.0
        self._clock.pass_by(step_s * self.shape.per_block)
        return step_s


def _failure(kind: FailureKind) -> Failure:
    return Failure(
        kind=kind, message=f"the simulated program came to its end: {kind.value}", log_end="the last words"
    )


class _Process:
    """One process: a speed of its own for as long as it lives, and blocks that are autocorrelated."""

    def __init__(
        self,
        plan: PlanSteps,
        on: Names,
        truth: Truth,
        noise: Noise,
        rng: np.random.Generator,
        *,
        perturbed: bool = False,
        machine: Disturbance | None = None,
        shape: Shape = USUAL,
        one_off_s: float = 0.0,
    ) -> None:
        self.plan = plan
        self._shape = shape
        self._machine = machine
        self._perturbed = perturbed
        self._truth, self._noise, self._rng = truth, noise, rng
        self._offset = rng.normal(0, noise.pair_sd / math.sqrt(2))
        if machine is not None:
            self._offset = math.log(machine.process())
        self._wander = 0.0
        self._log_factor = _log_factor(on, truth)
        self._on = on
        self._steps = shape.warm_steps
        self.first_steps_s = shape.startup_s + one_off_s + shape.warm_steps * self.step_s

    @property
    def step_s(self) -> float:
        """Without the noise of blocks."""
        return self._shape.step_s * math.exp(self._offset - self._log_factor)

    def block(self) -> float | None:
        """Seconds a step of the next block; None: the program is over."""
        self._steps += self._shape.per_block
        if self._truth.ends_after_steps is not None and self._steps > self._truth.ends_after_steps:
            return None
        return self.step_s * self._disturbed()

    def hold(self, on: Names) -> tuple[float, ...]:
        """Seconds of the steps of a hold with so much on."""
        shown = sum(math.log(more) for name, more in self._truth.switched.items() if name in on)
        usual = self._shape.step_s * math.exp(self._offset - _log_factor(on, self._truth) - shown)
        if self._machine is not None:
            return tuple(usual * factor for factor in self._machine.hold(self._shape.hold_steps))
        spent = usual * self._disturbed()
        return tuple(
            spent * math.exp(0.01 * value) for value in self._rng.normal(size=self._shape.hold_steps)
        )

    def _disturbed(self) -> float:
        if self._machine is not None:
            return median(self._machine.turns(self._shape.turns, self._shape.block_steps))
        noise, rng = self._noise, self._rng
        shock = rng.standard_t(3) / math.sqrt(3) * math.sqrt(1 - noise.rho**2)
        self._wander = noise.rho * self._wander + shock
        spike = rng.exponential(0.1) if rng.random() < noise.spike_share / 2 else 0.0
        return math.exp(noise.block_sd / math.sqrt(2) * self._wander + spike)

    def record(self) -> ArmRecord:
        """What it did."""
        effects = tuple(
            Effect(step.name, step.name not in self._truth.ineffective, f"{step.name} was looked at")
            for step in self.plan
        )
        rounding = 1e-3 if self._perturbed else 0.0
        curve = losses(self.plan, self._truth, self._rng, self._steps, rounding)
        return ArmRecord(
            step_s=self.step_s,
            losses=tuple(curve),
            effects=effects,
            peak_bytes=self._peak_bytes(),
            peak_method="counted tensors",
            first_steps_s=self.first_steps_s,
        )

    def _peak_bytes(self) -> int:
        if not self._truth.memory:
            return max(64, 512 - 64 * len(self.plan)) << 20
        return int(PEAK * math.prod(left for name, left in self._truth.memory.items() if name in self._on))


def _log_factor(on: Names, truth: Truth) -> float:
    alone = sum(math.log(factor) for name, factor in truth.factors.items() if name in on)
    return alone + sum(math.log(factor) for names, factor in truth.together.items() if names <= on)


def losses(
    plan: PlanSteps, truth: Truth, rng: np.random.Generator, num: int, rounding: float = 0.0
) -> list[float]:
    """The same falling curve every time, but for rounding and for what the truth says departs."""
    on = frozenset(word for step in plan for word in (step.name, step.label))
    loose = [step.label for step in plan if step.numerics is not Numerics.EXACT]
    if loose:
        rounding = 5e-4
    steps = np.arange(num)
    batches = 0.02 * np.random.default_rng(7).normal(size=num)
    curve = 2.0 * (0.3 + 0.7 / (1 + steps / 20)) * (1 + batches)
    # With nothing random about it a plan gives the same losses every time, whatever exact steps are beside it.
    own = np.random.default_rng(zlib.crc32("+".join(sorted(loose)).encode())) if loose else rng
    curve = curve * (1 + rounding * own.normal(size=num) + 1e-7 * rng.normal(size=num))
    if rounding:
        wander = np.convolve(own.normal(size=num), 0.7 ** np.arange(num))[:num]
        curve = curve * np.exp(truth.chaos * np.minimum(1, steps / 10) * wander)
    for names, share in truth.departing.items():
        if names <= on:
            curve = curve * (1 + share * np.minimum(1, steps / 20))
    return [float(value) for value in curve]


def candidates(*names: str, numerics: Numerics = Numerics.EXACT) -> list[Candidate]:
    """Candidates by name."""
    return [Candidate(name=name, numerics=numerics) for name in names]


def observation(command: Sequence[str] = ("python", "train.py"), step_s: float = STEP_S) -> Observation:
    """Of the simulated program."""
    step = StepTime(
        num=100,
        median_s=step_s,
        low_s=0.99 * step_s,
        high_s=1.01 * step_s,
        p50_s=step_s,
        p95_s=1.1 * step_s,
        p99_s=1.2 * step_s,
        samples_per_s=32.0 / step_s,
    )
    return Observation(
        command=tuple(command),
        step=step,
        phases={},
        ranks=(),
        memory=Memory(peak_bytes=512 << 20, device="cpu", method="resident set"),
        run=RunAccount(wall_s=14.0, parts={}),
        coverage=(),
        program=ProgramFacts(torch_version="2.13.0", script="train.py", script_sha256="0" * 64),
        anchor=Anchor("optimizer", 0),
        machine={"cpu_model": "simulated"},
        exit_code=None,
    )
