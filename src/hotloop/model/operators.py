"""The operators of a step, their arithmetic, and what share of the machine's peak that is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from hotloop.model.step_series import TimelineSpan


class TimelineLane(msgspec.Struct, frozen=True, kw_only=True):
    """What one thread, stream or worker did, one after another."""

    kind: str
    """`phases`, `operators` (of a thread), `device` (a stream) or `worker` (of a loader)."""
    number: int
    """Of the thread, the stream or the worker among its like."""
    spans: tuple[TimelineSpan, ...]
    """Times from the beginning of the timeline."""
    busy_s: float
    """In which at least one of its spans was under way."""


class DetailedTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """The last steps under the profiler, lane by lane."""

    window_s: float
    num_spans: int
    """Of operators and device work; the longest of them are kept."""
    lanes: tuple[TimelineLane, ...]


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """One operator at one set of shapes, per step."""

    name: str
    """As torch.profiler has it: `aten::mkldnn_convolution`."""
    shapes: tuple[tuple[int, ...], ...]
    """Of its tensors; empty: it takes none, or lists of them."""
    count: float
    self_s: float
    """Host time without that of operators inside it."""
    device_s: float | None
    """Time on the device of what it launched itself; None: nothing runs on a device."""
    share: float
    """Of the time of all operators, on the device where there is one, 0 to 1."""
    allocated_bytes: float
    """What it allocates itself, freed later or not."""
    flop: float | None = None
    """Of its products; None: it computes none, or they were not counted."""


def bare_name(name: str) -> str:
    """Return what people call an operator: of `aten::mm` it is `mm`."""
    return name.removeprefix("aten::")


def largest_shares(operators: Iterable[Operator], num: int = 3) -> str:
    """Return the names that take most of the operators' time, whatever their shapes: `mm 41%, copy_ 6%`."""
    shares: dict[str, float] = defaultdict(float)
    for one in operators:
        shares[bare_name(one.name)] += one.share
    largest = sorted(shares.items(), key=lambda row: -row[1])[:num]
    return ", ".join(f"{name} {share:.0%}" for name, share in largest)


class Operators(msgspec.Struct, frozen=True, kw_only=True):
    """What torch.profiler saw in the leading process."""

    num_steps: int
    window_s: float
    num: float
    """Calls of operators per step, those inside others left out."""
    self_s: float
    """Host time per step in all of them, under the profiler."""
    device_s: float | None
    """Device time per step in all of them; None: nothing runs on a device."""
    operators: tuple[Operator, ...]
    """The most expensive first."""
    busy_s: float | None = None
    """In which the busiest device worked, per step, for operators or not; None: none did, or of an earlier version."""
    timeline: DetailedTimeline | None = None
    """None: of an earlier version; left out of JSON."""


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """One matrix product, convolution, attention or recurrent layer at one set of shapes, per step."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    """Of its first tensor: `float32`."""
    count: float
    flop: float


class Flops(msgspec.Struct, frozen=True, kw_only=True):
    """Floating-point operations of one step of the leading process; what the backward computes again counts, too."""

    flop: float
    products: tuple[Product, ...]
    """The largest first."""
    unknown: tuple[str, ...] = ()
    """Operators that compute and have no formula: theirs are missing."""


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """The arithmetic of a step against what this machine can do."""

    flop: float
    """Per step, of all processes that train."""
    flop_per_s: float
    """Over the mean step, as it was timed without a profiler."""
    precision: str
    """In which most of it is computed: `fp32`, `tf32`, `bf16`, `fp16`, `fp64`."""
    peak_flop_per_s: float | None = None
    """Measured on this machine in this precision, of all devices that the steps use; None: see `why_no_peak`."""
    peak_foreign_share: float | None = None
    """Of the CPU, what other processes used when the peak was measured; None: not known, or there is no peak."""
    mfu: float | None = None
    """Share of that peak, 0 to 1."""
    why_no_peak: str | None = None
