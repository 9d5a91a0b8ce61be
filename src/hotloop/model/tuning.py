"""Trials, comparisons and the plan that comes of them."""

from enum import Enum
from typing import Any

import msgspec

from hotloop.model.goal import Aim, Reached
from hotloop.model.observation import SCHEMA, Anchor
from hotloop.model.optimization import Candidate, Effect, Numerics, Refusal
from hotloop.model.option_value import OptionValue
from hotloop.model.ratio import Ratio
from hotloop.model.sites import Sites
from hotloop.model.tree_memory import TreeMemory


class FailureKind(str, Enum):
    """How a run failed."""

    CRASH = "crash"
    OUT_OF_MEMORY = "out of memory"
    TIMEOUT = "timeout"
    LATE = "too late"
    """It was left out so that the others could be compared in the time there was: nothing is said of it."""
    ENDED = "ended too early"


class Failure(msgspec.Struct, frozen=True, tag="failed", kw_only=True):
    """A run that did not come to its end."""

    kind: FailureKind
    message: str
    log_end: str = ""
    num_steps: int | None = None
    """Of a program that ended by itself; None: it did not."""
    over_limit: bool = False
    """It ran out of the memory that it was allowed to have, and not of the device's."""


class ParityEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Whether training still learns the same, or a model that is not trained still answers the same."""

    passed: bool
    decided: bool = True
    """False: the runs at hand could not tell, so it has not passed; more time may."""
    statistic: float | None
    """None: nothing could be compared."""
    limit: float | None
    num_steps: int
    method: str
    evidence: str
    compared: str = "losses"
    """Or `outputs`: what each forward gave, where nothing is trained."""

    @property
    def measured(self) -> bool:
        """Whether something was compared, or what was seen settled it: a loss that is no number, another training."""
        return self.statistic is not None or (self.decided and not self.passed)


class Contention(msgspec.Struct, frozen=True, kw_only=True):
    """What others did on the machine meanwhile."""

    num_blocks: int
    num_void: int
    """Blocks thrown away and repeated."""
    num_noisy: int = 0
    """Blocks kept although others were busy, because it did not get quieter."""
    max_foreign_share: float | None = None
    """None: not measured on this system."""

    @property
    def num_disturbed(self) -> int:
        """Blocks that were repeated, or kept, because others were busy."""
        return self.num_void + self.num_noisy


class Measured(msgspec.Struct, frozen=True, tag="measured", kw_only=True):
    """Blocks of a candidate against the incumbent."""

    pairs: tuple[tuple[float, ...], ...]
    """log(time of the incumbent / time of the candidate) of each block, pair by pair."""
    step_s: tuple[float, float]
    """Median step time of the incumbent and of the candidate."""
    effects: tuple[Effect, ...] = ()
    parity: ParityEvidence | None = None
    one_off_s: float | None = None
    """Seconds that the candidate's first steps cost more than the incumbent's: compilation, autotuning."""
    peak_bytes: tuple[int | None, int | None] = (None, None)
    contention: Contention = Contention(num_blocks=0, num_void=0)


class Switched(msgspec.Struct, frozen=True, tag="switched", kw_only=True):
    """A candidate switched on and off in one process, together with others."""

    num_holds: int
    """Of all patterns together."""
    settle_steps: int
    """Steps after a switch that were not counted."""
    num_noisy: int = 0
    evidence: str = ""
    one_off_s: float | None = None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate tried against one incumbent."""

    key: str
    """Names what was run; a resumed session does not repeat a key it has."""
    candidate: Candidate
    incumbent: tuple[Candidate, ...]
    outcome: Measured | Switched | Failure
    decision: str
    """`accepted`, or the reason why not."""
    ratio: Ratio | None = None
    seconds: float = 0.0
    """What the trial took."""
    predicted: Ratio | None = None
    """The gain that was expected before it; None: no prediction."""
    method: str = ""
    """How the ratio was obtained."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a session decided to do next."""

    at_s: float
    """Seconds of the budget that were used by then."""
    why: str
    """What is done, what it may bring, and what it takes, in one line."""


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One optimization of a plan, with its measured contribution."""

    name: str
    params: dict[str, Any] = {}
    ratio: float
    low: float
    high: float
    numerics: Numerics = Numerics.EXACT
    break_even_steps: int | None = None
    """Steps after which a one-off cost is earned back; None: it has none worth naming."""
    evidence: str = ""
    method: str = ""
    """How its own factor was obtained."""
    proven: bool = True
    """Whether its own factor is above 1 with its interval; otherwise it is part of a whole that is."""
    memory_ratio: float | None = None
    """Peak without it over peak with it, beside the other steps; None: memory was not counted."""
    caution: str = ""
    """Where it may cost time instead, or what it leaves to the user, as a sentence; empty: nothing is known that speaks
    against it."""


RESUME_BUDGET = "5m"
"""What a proof of something likely is given."""


class LikelyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What was promising and could not be proven in the time there was; never applied unless asked for."""

    steps: tuple[PlanStep, ...]
    """All that is on, the proven plan's own steps among them."""
    ratio: float
    low: float
    high: float
    reason: str
    """What is missing for a proof."""
    resume: str
    """The command that goes on."""


class Compatibility(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan was proven on; on anything else it is a guess."""

    machine: dict[str, Any]
    torch_version: str | None
    script: str | None
    script_sha256: str | None
    command: tuple[str, ...]
    infers: bool = False
    """The program trains nothing: steps act on forwards without gradients."""
    folder: str = ""
    """That the command runs in and paths are relative to, as seen from the plan's own; empty: an earlier version's."""


class StepEdit(msgspec.Struct, frozen=True, kw_only=True):
    """By what a step is known in the program's files."""

    lines: dict[str, dict[str, int]]
    """Path to digests of the lines that the step put there, and how often each stands in the file then."""
    options: tuple[OptionValue, ...] = ()
    """Those whose default it changed: a command that gives one of them another value undoes it."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What one patch makes of the program."""

    edits: dict[str, StepEdit]
    """Name to edit of each step that the program then does by itself."""
    refused: dict[str, str] = {}
    """Name of each step that is not written, and why."""
    environment: dict[str, str] = {}
    """What the program then has to be started with."""
    command: tuple[str, ...] = ()
    """As it then has to be typed."""


class Patched(msgspec.Struct, frozen=True, kw_only=True):
    """The program with a plan written into it."""

    variants: tuple[Written, ...] = ()
    """The patch, and that with `--unsafe` where it differs; empty: nothing was to be written, or nobody has looked."""
    sites: Sites = Sites()
    """Where the patched source calls what a patch changes; empty: no patch was written."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is on, in order, and what that was measured to bring."""

    steps: tuple[PlanStep, ...]
    speedup: Ratio | None
    """Of the whole plan in fresh processes against the original program; None: the plan is empty."""
    parity: ParityEvidence | None
    fit: Compatibility
    sites: Sites = Sites()
    """Where the program's source calls what a patch changes; empty: of an earlier version."""
    patched: Patched = Patched()
    """What `hotloop patch` makes of the program's source, so that it is known again."""
    schema: int = SCHEMA


class OwnRun(msgspec.Struct, frozen=True, kw_only=True):
    """The program's run from its start to its own end."""

    num_steps: int
    wall_s: float
    training_s: float
    """From the second step to the last: what changes of the step can shorten."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The program as it was."""

    step_s: float
    low_s: float
    high_s: float
    samples_per_s: float | None
    peak_bytes: int | None
    mean_s: float | None = None
    """What phases add up to and savings are of; None: of an earlier version."""
    anchor: Anchor
    own_run: OwnRun | None = None
    """None: it was not seen to end by itself."""

    @property
    def whole_s(self) -> float:
        """The mean step, as `StepTime.whole_s`; of an earlier version's result the median."""
        return self.step_s if self.mean_s is None else self.mean_s


class TuneResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `hotloop tune` says."""

    command: tuple[str, ...]
    baseline: Baseline
    floor: float | None
    """Relative difference below which nothing is claimed on this machine, from the program against itself; None: not
    measured, the session was interrupted."""
    plan: Plan
    refused: tuple[Refusal, ...]
    trials: tuple[Trial, ...]
    likely: tuple[LikelyPlan, ...] = ()
    """Apart from the plan; the most promising first."""
    peak_bytes: tuple[int | None, int | None]
    """Before and after."""
    tree_peak: tuple[TreeMemory | None, TreeMemory | None] = (None, None)
    """Of all processes together, on the host, before and after."""
    contention: Contention
    confirmation: str
    """How the final number was measured."""
    num_sets: int | None = None
    """Of fresh processes, from which the final number is; None: there is none, or it is of an earlier version."""
    wall_s: float
    budget_s: float | None = None
    """Time that was given; None: of an earlier version."""
    choices: tuple[Choice, ...] = ()
    """What was done next each time, and why; the last one says why it ended. Empty: of an earlier version."""
    coverage: tuple[str, ...] = ()
    interrupted: bool = False
    aim: Aim = Aim()
    """What the plan is for; speed in results of earlier versions."""
    goal: Reached | None = None
    """What came of it; None: speed alone was asked for."""
    schema: int = SCHEMA
