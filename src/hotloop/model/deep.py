"""What the profilers saw, each in a short window of its own."""

from __future__ import annotations

import msgspec

from hotloop.model.dataflow import Dataflow
from hotloop.model.line_work import StepWork
from hotloop.model.operators import Flops, Operators
from hotloop.model.step_memory import StepMemory


class CallSite(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of call at one line of the user's program."""

    path: str
    line: int
    function: str
    call: str
    """As it is written: `.item()`, `if tensor`, `float()`, `print`, `.to()`, `torch.zeros`."""
    kind: str
    """`sync` (the host asks for a value, and waits on a device), `copy`, or `create`."""
    device: str
    """Type of the device that the tensor lives on."""
    count_per_step: float
    time_per_step_s: float
    low_s: float
    """Lower end of the 95% interval of the time per step."""
    high_s: float
    bytes_per_step: float | None = None
    """Copied or created; None: not a copy, nor a creation."""
    loading: bool = False
    """It is called while a DataLoader makes a batch in this process."""
    through: str | None = None
    """The library's `file:line` that made the call for that line of the user's; None: the line itself calls."""


class CallSites(msgspec.Struct, frozen=True, kw_only=True):
    """Synchronizations, copies and tensor creations of the leading process, by line."""

    num_steps: int
    window_s: float
    sites: tuple[CallSite, ...]
    """The most expensive first."""
    functions_watched: bool = True
    """False: only tensor methods were, because code that torch.compile made is guarded on torch's functions."""


class Frame(msgspec.Struct, frozen=True):
    """A line of Python."""

    path: str
    line: int
    function: str
    owner: str = "user"
    """`user`, `library`, `torch` or `hotloop`."""


class Sample(msgspec.Struct, frozen=True):
    """Time that was spent under one stack of calls."""

    stack: tuple[int, ...]
    """Indices of frames, the outermost first."""
    process: str
    """`train`, `worker` (of a loader), or `thread` (a different thread of the training process)."""
    phase: str | None
    """In which phase of the step; None: not the training thread."""
    spent_s: float
    num: int


class HostLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the user's program, and the time spent in it and in what it calls of others."""

    path: str
    line: int
    function: str
    process: str
    phase: str | None
    share: float
    """Of the sampled time of its kind of process, 0 to 1; of the step where that is the training thread."""
    spent_s: float
    num: int
    """Samples."""


class HostSamples(msgspec.Struct, frozen=True, kw_only=True):
    """Where the host's time goes, by sampling Python stacks."""

    num_steps: int | None
    """In the window; None: they were not counted."""
    window_s: float
    interval_s: float
    lines: tuple[HostLine, ...]
    """The most expensive first."""
    frames: tuple[Frame, ...]
    samples: tuple[Sample, ...]


class GrowingContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container of the program's own that gains entries with every step."""

    name: str
    """As its owner calls it: `history`, `self.features`."""
    path: str
    function: str
    """The function whose variable it is, or the class; `<module>`: a global."""
    kind: str
    """`list`, `dict` or `deque`."""
    per_step: float
    """Entries that it gains; of a loader worker's container for each sample."""
    bytes_per_step: float
    """Of those entries, judged by the last one; what a graph holds is not in it."""
    keeps_graph: bool
    """The last entry has a graph, so that the activations of its step are kept, too."""
    has_tensors: bool = True
    """The last entry has tensors or arrays."""


class CopiedContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container of Python objects that each loader worker copies as it reads them: reading counts references."""

    name: str
    """As its owner calls it: `self.names`."""
    path: str
    function: str
    """The class whose attribute it is; `<module>`: a global."""
    kind: str
    num: int
    """Entries."""
    copied_bytes: float
    """Of pages with reference counts, judged by a few entries; data of tensors and arrays is not in it."""


class GrowingHooks(msgspec.Struct, frozen=True, kw_only=True):
    """Hooks with one code, registered with every step and not removed."""

    path: str
    line: int
    """That registers them."""
    function: str
    hook: str
    """Name of the hook."""
    hook_path: str
    hook_line: int
    hook_last: int
    """Its last line."""
    num: int
    """At the end of the window, on all modules together."""
    per_step: float
    """How many come with a step."""


class Forwards(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of the program's models in training mode, as a whole, at one line of the user's."""

    path: str
    line: int
    function: str
    count_per_step: float
    unused_per_step: float
    """Of those, the ones that kept a graph which no backward went through."""
    repeated_per_step: float
    """Of these, the ones on a batch that the same model had had in this step."""
    unused_s: float
    """Time per step in the unused ones."""


class LoadingPart(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is done to make a sample or a batch."""

    kind: str
    """`own` (code of the data set), `open`, `read`, `decode`, `transform`, `collate`, or `hand_over` from a worker."""
    name: str
    """The transform's class, the library's function."""
    path: str | None
    """Where the user's source defines or makes it; None: not there."""
    line: int | None
    count_per_sample: float
    time_per_sample_s: float
    """Without other parts that it calls."""
    share: float
    """Of the time in which samples are made and handed over, 0 to 1."""
    random: bool | None = None
    """Of a transform: it drew from a global generator while it was looked at; None: it was not looked at."""
    repeats: bool = False
    """It comes before any chance: opening, reading, decoding, and the transforms before the first random one."""


class OpenedFolder(msgspec.Struct, frozen=True, kw_only=True):
    """The folder in which all files lie that are opened while samples are made."""

    path: str
    files_per_sample: float
    bytes: int | None
    """Of all files below it; None: there were too many to count."""


class ConstantCall(msgspec.Struct, frozen=True, kw_only=True):
    """A line that calls a function of the program's for a sample, which gave the same each time."""

    path: str
    line: int
    function: str
    called: str
    num_per_sample: float
    share: float
    """Of the time in which batches are made, 0 to 1."""


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """Where a sample's time goes."""

    process: str
    """`train` or `worker`: who makes the batches."""
    num_processes: int
    """The loader's workers, or 1."""
    window_s: float
    num_batches: int
    num_samples: int
    sample_s: float
    """Time in which one process makes a sample and hands it over."""
    parts: tuple[LoadingPart, ...]
    """The most expensive first."""
    used_bytes_per_sample: float | None
    """Of the tensors that come out; None: none were seen."""
    read_bytes_per_sample: float | None
    """That were asked of files; None: the system does not tell. What is mapped into memory is not in it."""
    reads_per_sample: float | None
    private_bytes_per_worker: float | None = None
    """Memory that a worker shares with no other process; None: no worker, or the system does not tell."""
    copied: CopiedContainer | None = None
    """The largest container of Python objects that workers copy; None: no worker, or none of a thousand entries."""
    growing: tuple[GrowingContainer, ...] = ()
    """Containers that grow in a worker, the largest first."""
    padding: float = 0.0
    """Share of a batch that was added to pad its samples to the longest, 0 to 1; 0: all are of one length, or are not
    padded."""
    padding_beyond: float = 0.0
    """Share of a batch that was added beyond its longest sample."""
    folder: OpenedFolder | None = None
    """None: no file is opened for a sample."""
    rows_in_memory: bool = False
    """Every sample is a row of tables that lie in memory as a whole."""
    constant: tuple[ConstantCall, ...] = ()
    """The most expensive first."""


class OptimizerTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one step of an optimizer takes on copies of its parameters, as it is and fused."""

    cls: str
    num_parameters: int
    now_s: float
    fused_s: float


class Deep(msgspec.Struct, frozen=True, kw_only=True):
    """What detailed profiling saw; None: that instrument did not run (coverage says why)."""

    operators: Operators | None = None
    flops: Flops | None = None
    call_sites: CallSites | None = None
    host: HostSamples | None = None
    growing_containers: tuple[GrowingContainer, ...] | None = None
    """Those that keep a graph first; empty: none grows."""
    growing_hooks: tuple[GrowingHooks, ...] | None = None
    """Empty: none pile up."""
    forwards: tuple[Forwards, ...] | None = None
    loading: Loading | None = None
    dataflow: Dataflow | None = None
    memory: StepMemory | None = None
    line_work: StepWork | None = None
    optimizers: tuple[OptimizerTime, ...] | None = None
    """Those that could be fused; empty: none."""

    def without_series(self) -> Deep:
        """Return it without what is only there to be drawn, as JSON shows it."""
        if self.operators is None:
            return self
        return msgspec.structs.replace(self, operators=msgspec.structs.replace(self.operators, timeline=None))
