"""The one shape every Chrome-trace event is decoded into; what is not named here is skipped, not built."""

from msgspec import UNSET, Raw, Struct, UnsetType, field

Number = int | float
Label = int | float | str | bool | None
"""Process, thread, stream and correlation ids: numbers in new traces, strings (`"stream 7"`) in old ones."""
Verbatim = Raw | UnsetType
"""JSON text kept as it stands: shapes and stacks are compared and shown far more often than computed with."""


class EventArgs(Struct, gc=False):
    """The arguments that any analysis reads, under every name that a version of the profiler gave them."""

    correlation: Label = None
    external: Label = field(name="External id", default=None)
    external_old: Label = field(name="external id", default=None)
    device: Label = None
    stream: Label = None
    size_bytes: Label = field(name="bytes", default=None)
    grid: Verbatim = UNSET
    block: Verbatim = UNSET
    graph_node: Label = field(name="graph node id", default=None)
    dims: Verbatim = field(name="Input Dims", default=UNSET)
    types: Verbatim = field(name="Input type", default=UNSET)
    concrete: Verbatim = field(name="Concrete Inputs", default=UNSET)
    stack: Verbatim = field(name="Call stack", default=UNSET)
    sequence: Label = field(name="Sequence number", default=None)
    forward_thread: Label = field(name="Fwd thread id", default=None)
    collective: Label = field(name="Collective name", default=None)
    in_elements: Label = field(name="In msg nelems", default=None)
    out_elements: Label = field(name="Out msg nelems", default=None)
    group: Label = field(name="Process Group Name", default=None)
    group_size: Label = field(name="Group size", default=None)
    dtype: Label = None
    wait_stream: Label = field(name="wait_on_stream", default=None)
    wait_record: Label = field(name="wait_on_cuda_event_record_corr_id", default=None)
    moved_bytes: Label = field(name="Bytes", default=None)
    allocated: Label = field(name="Total Allocated", default=None)
    reserved: Label = field(name="Total Reserved", default=None)
    device_type: Label = field(name="Device Type", default=None)
    device_id: Label = field(name="Device Id", default=None)
    name: Label = None


class Event(Struct, gc=False):
    """One entry of `traceEvents`; times in microseconds."""

    ph: str = ""
    cat: str | None = ""
    name: str = ""
    pid: Label = None
    tid: Label = None
    ts: Number | None = None
    dur: Number | None = -1
    """Negative where there is none, as for instants."""
    args: EventArgs | None = None


class VerbatimEvent(Event, gc=False):
    """The same event with its times as written, for files whose times a float cannot hold to the nanosecond."""

    ts: Raw = Raw(b"null")  # type: ignore[assignment]
    dur: Raw = Raw(b"-1")  # type: ignore[assignment]
