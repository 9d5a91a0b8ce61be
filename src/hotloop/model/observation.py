"""What was measured of one run of the user's program."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from hotloop.model.ceilings import Ceilings, Prediction
from hotloop.model.deep import Deep, HostLine
from hotloop.model.inference import Inference
from hotloop.model.memory_account import PeakAccount
from hotloop.model.monitors import Monitors
from hotloop.model.operators import Efficiency
from hotloop.model.out_of_memory import OutOfMemory
from hotloop.model.program import ProgramFacts
from hotloop.model.sites import Sites
from hotloop.model.step_series import StepSeries
from hotloop.model.tree_memory import TreeMemory

SCHEMA = 1
"""Raised when a JSON name changes its meaning or goes away."""


class Phase(str, Enum):
    """Where a step's time goes; the phases of a step add up to the step."""

    DATA = "data"
    TRANSFER = "transfer"
    FORWARD = "forward"
    """The model, and the loss up to the start of the backward pass."""
    BACKWARD = "backward"
    COMMUNICATION = "communication"
    OPTIMIZER = "optimizer"
    OTHER = "other"


class PhaseTime(msgspec.Struct, frozen=True):
    """Time of one phase within a step."""

    median_s: float
    share: float
    """Of the step's time, 0 to 1; the shares of all measured phases add up to 1."""
    low_s: float | None = None
    """Lower end of the 95% interval of the median; None: of an observation kept by an earlier version."""
    high_s: float | None = None


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """The step: one turn of the loop's rhythm."""

    num: int
    """Steps measured, warm-up and irregular ones left out."""
    median_s: float
    low_s: float
    """Lower end of the 95% interval of the median."""
    high_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    mean_s: float | None = None
    """What shares and rates are of; None: of an observation kept by an earlier version."""
    samples_per_s: float | None = None
    """None: no batch dimension was seen."""
    tokens_per_s: float | None = None
    """That the model reads, or generates; None: no integer token batch was seen."""
    rhythm: tuple[str, ...] = ()
    """One turn of the loop as event names, repeats folded: `3x(data forward backward)`, `optimizer`."""

    @property
    def whole_s(self) -> float:
        """What shares, rates and costs are of: the mean; of an earlier version's observation the median."""
        return self.median_s if self.mean_s is None else self.mean_s


class RankObservation(msgspec.Struct, frozen=True, kw_only=True):
    """One training process of the command."""

    rank: int | None
    """None: not a rank of a process group."""
    pid: int
    role: str
    """`train`, `infer`, or `idle` (no step was seen)."""
    step: StepTime | None
    phases: dict[Phase, PhaseTime]
    other: dict[str, PhaseTime] = {}
    """See `Observation.other`."""
    evaluated: PhaseTime | None = None
    """See `Observation.evaluated`."""
    peak_bytes: int | None = None
    page_faults: float | None = None
    """Minor page faults of a step, of all threads: buffers that were given back, and are faulted in anew."""
    lines: tuple[HostLine, ...] = ()
    """Of the rank that the others wait for: where its host's time goes, the most expensive first."""


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What a program takes of one accelerator.

    Attributes:
        index: as the program counts its devices.
        uuid: the device's own; None: torch does not tell it.
        name: the model.
        total_bytes: what the device has.
        reserved_bytes: the most that torch's allocators held, of all its processes together.
        beside_bytes: what was taken beside that: contexts, loaded kernels, libraries' work space, and other programs'.
        allocated_bytes: the most that tensors took, of all processes together; None: not told.
        inactive_split_bytes: the most that lay unused in segments of which a part was in use, so that they could be
            neither given back nor used for a larger request; None: not told.
        num_retries: how often an allocator gave its cached blocks back to the driver and asked again.
    """

    index: int
    uuid: str | None
    name: str
    total_bytes: int
    reserved_bytes: int
    beside_bytes: int
    allocated_bytes: int | None = None
    inactive_split_bytes: int | None = None
    num_retries: int = 0

    @property
    def slack_bytes(self) -> int | None:
        """What the allocators reserved beyond the most that tensors took; None: not told."""
        return None if self.allocated_bytes is None else max(0, self.reserved_bytes - self.allocated_bytes)

    @property
    def used_bytes(self) -> int:
        """Reserved, and taken beside that."""
        return self.reserved_bytes + self.beside_bytes


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of the whole command."""

    peak_bytes: int | None
    """Largest resident set of the training process, or device memory where there is a device."""
    device: str
    method: str
    host_peak_bytes: int | None = None
    """Largest resident set of a training process."""
    import_bytes: int | None = None
    """What a training process had taken when it had imported torch: the interpreter and libraries; None: not known."""
    tree: TreeMemory | None = None
    """Of all processes together, loader workers too, up to the last measured step; None: not measured."""
    pinned_bytes: int | None = None
    """The most that torch's allocator of pinned buffers held on the host, of all training processes together; None: no
    accelerator is used, or torch does not tell (before 2.9)."""
    devices: tuple[DeviceMemory, ...] = ()
    """Each accelerator that the program uses."""
    account: PeakAccount | None = None
    """What holds the peak of a training step; None: not looked at (coverage says why)."""


STARTUP_PARTS = (
    "interpreter_s",
    "launcher_s",
    "import_s",
    "setup_s",
    "first_batch_s",
    "first_step_s",
    "compilation_s",
)
"""Of a run's account: what is paid once, before and in the first step."""

_NOT_TRAINING = ("held_by_hotloop_s", "after_last_step_s", "after_training_s", "shutdown_s", "unaccounted_s")


class RunAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The wall time of the whole command, by part."""

    wall_s: float
    parts: dict[str, float]
    """`<name>_s` to seconds; they add up to `wall_s`, what is unnamed under `unaccounted_s`."""
    num_steps: int | None = None
    """All steps, the first and the irregular ones too; None: no rhythm was found, as below."""
    num_regular_steps: int | None = None
    """Those that `step_*` holds: neither the first, nor an irregular one, nor one that was looked at closer."""
    num_epochs: int | None = None
    """Starts of the training loader; None: no loader feeds the step."""
    num_evaluations: int | None = None
    """Times that the model was evaluated between training steps."""
    num_checkpoints: int | None = None
    """Times that something was saved between two steps."""
    num_compilations: int | None = None
    """Times that torch.compile worked on something."""
    num_recompilations: int | None = None
    """Of those, the ones after the second step, when all that a step consists of has been compiled once."""
    recompilation_s: float | None = None
    """What of `compilation_s` those took."""
    num_collections: int | None = None
    """Times that the garbage collector went through all objects, after the first step."""
    collection_s: float | None = None
    """What those took; it is a part of whatever they came in the middle of."""
    scored_with_gradients_s: float | None = None
    """What of `evaluation_s` are forwards that kept a graph which no backward used."""

    @property
    def startup_s(self) -> float:
        """Seconds that are paid once, before and in the first step."""
        return sum(self.parts.get(name, 0.0) for name in STARTUP_PARTS)

    @property
    def training_s(self) -> float:
        """Seconds from the second step to the last, evaluation and new epochs between steps included."""
        return self.wall_s - sum(self.parts.get(name, 0.0) for name in (*STARTUP_PARTS, *_NOT_TRAINING))


class Coverage(msgspec.Struct, frozen=True):
    """Something that was not measured, and why."""

    what: str
    why: str


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the command, of those that an observation is made of.

    Attributes:
        told: what came from it: `step` (steps, phases, the account of the run, memory), names of instruments,
            `ceilings and predictions`.
        why: it was needed; empty: it is the first.
        wall_s: that it took.
        num_steps: of the program; None: not known.
        exit_code: of the program; None: it was ended.
    """

    told: tuple[str, ...]
    why: str
    wall_s: float
    num_steps: int | None = None
    exit_code: int | None = None


STEP = "step"
"""What a gap is called where no step was measured."""

MORE_STEPS = "more steps"
"""What a gap is called where the time budget was over before enough was measured."""

NO_TIME = "no time left"
"""How the reason of a gap begins that is due to the time budget."""

INTERRUPTED = "the rest of the run"
"""What a gap is called where the user ended the program before enough was measured."""

INFERRING = frozenset({"forward", "request"})
"""Kinds of anchor of a program that trains nothing."""


class Anchor(msgspec.Struct, frozen=True):
    """The event that ends a step.

    `kind` is `optimizer`, `backward`, `forward` or `request` (many forwards, each of which continues a text); `slot`
    the order in which this program first used it (the second optimizer that stepped has slot 1; -1 means any); every
    `every`-th such event ends a step.
    """

    kind: str
    slot: int
    every: int = 1

    @property
    def infers(self) -> bool:
        """Whether the program only evaluates or generates: its steps have no backward."""
        return self.kind in INFERRING


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One observed run. `None` means not measured, never zero."""

    command: tuple[str, ...]
    step: StepTime | None
    phases: dict[Phase, PhaseTime]
    ranks: tuple[RankObservation, ...]
    memory: Memory
    run: RunAccount
    coverage: tuple[Coverage, ...]
    program: ProgramFacts
    anchor: Anchor | None
    machine: dict[str, Any]
    exit_code: int | None
    """Of the program; None: it was ended at a step boundary after the measurement."""
    other: dict[str, PhaseTime] = {}
    """What of the phase `other` has a name: `checkpoint`, `logging`, `import`, `compilation`."""
    evaluated: PhaseTime | None = None
    """What of each training step's forward keeps no graph: a teacher's, a frozen trunk's, a score; None: nothing."""
    inference: Inference | None = None
    """Latency and throughput; None: the program trains."""
    clock: str = "host"
    """What the step and its phases were timed by: `host`, or `device`: the device's own clock."""
    epoch_steps: int | None = None
    """Steps between two starts of the training loader; None: not seen twice."""
    total_steps: int | None = None
    """Steps until the program ended by itself; None: it was ended."""
    uses_network: bool | None = None
    """Whether a connection beyond this machine was seen; None: could not be looked at."""
    foreign_share: float | None = None
    """Share of the machine's processor time that others took meanwhile, 0 to 1; None: not measured."""
    steal_share: float | None = None
    """Share of it in which the hypervisor ran another machine; None: not measured."""
    ceilings: Ceilings | None = None
    """What the step would be with perfect input, and with a perfect device; None: not measured."""
    predictions: tuple[Prediction, ...] = ()
    """The gain expected of the optimizations that apply; empty: not measured."""
    deep: Deep | None = None
    """What the profilers saw, each in a short window after the measurement; None: none was run."""
    efficiency: Efficiency | None = None
    """The arithmetic of a step against this machine's measured peak; None: FLOPs were not counted."""
    monitors: Monitors | None = None
    """What the machine did meanwhile; None: not measured (coverage says why)."""
    series: tuple[StepSeries, ...] = ()
    """Every step of every training process; left out of JSON, `hotloop report --csv` writes it."""
    out_of_memory: OutOfMemory | None = None
    """How the program ran out of memory; None: it did not."""
    sites: Sites = Sites()
    """Where the program's source calls what a patch of it changes."""
    runs: tuple[ProgramRun, ...] = ()
    """The runs of the program that all this is of, in their order; empty: one run, by an earlier version."""
    schema: int = SCHEMA

    @property
    def why_no_step(self) -> str | None:
        """Why no step was measured, and what to do about it; None: one was, or nobody looked for one."""
        return next((gap.why for gap in self.coverage if gap.what == STEP), None)

    def without_series(self) -> Observation:
        """Return it without the raw steps and spans, as JSON shows it."""
        deep = self.deep.without_series() if self.deep else None
        return msgspec.structs.replace(self, series=(), deep=deep)
