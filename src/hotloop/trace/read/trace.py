"""A trace in memory: typed columns, one row per event, times in integer nanoseconds."""

from dataclasses import dataclass, field

import msgspec

from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import Array
from hotloop.trace.read.stream import Loss


@dataclass(frozen=True)
class HostEvents:
    """What ran on host threads: operators, annotations, Python functions, runtime calls, profiler overhead."""

    kind: Array
    name: Array
    """Index into `Trace.names`."""
    start: Int64
    end: Int64
    thread: Array
    """Index into `Trace.threads`."""

    def __len__(self) -> int:
        """How many events there are."""
        return len(self.start)


@dataclass(frozen=True)
class Operators:
    """The arguments of operators and annotations; -1 where one is missing."""

    row: Array
    """Row in `HostEvents`."""
    external: Int64
    sequence: Int64
    forward_thread: Int64
    dims: Array
    """Index into `Trace.texts`, as are `types`, `concrete` and `stack`."""
    types: Array
    concrete: Array
    stack: Array


@dataclass(frozen=True)
class Calls:
    """The arguments of runtime and driver calls."""

    row: Array
    correlation: Int64
    external: Int64


@dataclass(frozen=True)
class DeviceEvents:
    """Kernels, copies and memsets."""

    kind: Array
    name: Array
    start: Int64
    end: Int64
    device: Int64
    stream: Int64
    correlation: Int64
    external: Int64
    size_bytes: Int64
    grid: Array
    block: Array
    graph_node: Int64
    collective: Array
    """Index into `Trace.names` of the collective's name; -1: not said."""
    in_elements: Int64
    out_elements: Int64
    group: Array
    dtype: Array
    is_communication: Array

    def __len__(self) -> int:
        """How many events there are."""
        return len(self.start)


@dataclass(frozen=True)
class MemoryEvents:
    """Allocations (positive) and releases."""

    start: Int64
    moved_bytes: Int64
    allocated: Int64
    reserved: Int64
    device_type: Int64
    device_id: Int64


@dataclass(frozen=True)
class SyncEvents:
    """What streams and contexts waited for, as newer CUDA traces tell it."""

    name: Array
    start: Int64
    end: Int64
    device: Int64
    stream: Int64
    correlation: Int64
    wait_stream: Int64
    wait_record: Int64


@dataclass(frozen=True)
class DeviceAnnotations:
    """The device's side of user annotations."""

    name: Array
    start: Int64
    end: Int64
    device: Int64
    stream: Int64


class DeviceProperties(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace says of a device."""

    id: int = 0
    name: str = ""
    memory_bytes: int | None = msgspec.field(name="totalGlobalMem", default=None)
    major: int | None = msgspec.field(name="computeMajor", default=None)
    minor: int | None = msgspec.field(name="computeMinor", default=None)
    num_sms: int | None = msgspec.field(name="numSms", default=None)


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace says of the run; None: it does not say."""

    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    base_ns: int | None = None
    devices: tuple[DeviceProperties, ...] = ()
    with_stack: bool | None = None
    record_shapes: bool | None = None
    profile_memory: bool | None = None
    cuda_version: int | None = None
    hip_version: int | None = None


@dataclass
class Tally:
    """Events that are not in the columns as they were written, by reason."""

    num_events: int = 0
    without_time: int = 0
    negative_duration: int = 0
    overflowing_duration: int = 0
    unpaired: int = 0
    other: int = 0
    flows: int = 0
    zero_kernels: int = 0


@dataclass(frozen=True)
class Trace:
    """Everything that was read from one trace."""

    label: str
    names: list[str]
    texts: list[bytes]
    """Shapes, types and stacks as JSON text, each once."""
    threads: list[tuple[object, object]]
    """(process, thread) as the trace calls them."""
    thread_names: dict[int, str]
    host: HostEvents
    operators: Operators
    calls: Calls
    device: DeviceEvents
    memory: MemoryEvents
    syncs: SyncEvents
    annotations: DeviceAnnotations
    metadata: Metadata
    loss: Loss
    tally: Tally
    damage: str | None = None
    """What ended the compressed stream early."""
    num_bytes: int = 0
    span: tuple[int, int] | None = field(default=None)
    """The profiler's own window, where the trace names it."""

    def name_index(self, wanted: str) -> int:
        """The index of a name; -1 when no event has it."""
        try:
            return self.names.index(wanted)
        except ValueError:
            return -1
