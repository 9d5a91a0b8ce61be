"""What a program would need on devices that are not here."""

from __future__ import annotations

import msgspec


class PlannedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that a program may be planned for.

    Attributes:
        name: as users say it: `A100 40GB`.
        total_bytes: what its driver reports, less than what is printed on the box.
        outside_bytes: taken outside the caching allocator: context, libraries, kernels that are loaded.
        capability: compute capability; of an AMD device that of the NVIDIA one whose kernels torch has counterparts of.
        num_processors: streaming multiprocessors, or compute units.
        workspace_bytes: cuBLAS's workspace, which torch allocates with the first product; 0: torch has none there.
    """

    name: str
    total_bytes: int
    outside_bytes: int
    capability: tuple[int, int]
    num_processors: int = 0
    workspace_bytes: int = 0


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """A peak of memory, in bytes, with the interval that the estimator's own error and its assumptions give."""

    num_bytes: int
    low: int
    high: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is alive at the peak, in bytes.

    Attributes:
        by_class: parameters, gradients, optimizer_state, activations, temporaries, inputs.
        by_module: activations and temporaries by the module that made them.
        by_line: the same by the line of the program, as file:line.
    """

    by_class: dict[str, int] = {}
    by_module: dict[str, int] = {}
    by_line: dict[str, int] = {}


class PlannedPeak(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration on one device.

    Attributes:
        configuration: its name: `as it is`, `bf16 autocast + checkpointing`.
        device: name of the device.
        allocated: peak of what tensors take; None: not to be had, `missing` says why.
        reserved: peak of what the caching allocator holds.
        fits: whether reserved and outside fit on the device: yes, no, or unsure within the interval.
        held: what is alive at the peak.
        missing: why the configuration cannot be had in this program; None: it can.
    """

    configuration: str
    device: str
    allocated: Peak | None = None
    reserved: Peak | None = None
    fits: str | None = None
    held: Held | None = None
    missing: str | None = None


class LargestBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The largest batch of one configuration that fits on a device.

    Attributes:
        batch_size: samples; None: not even one fits.
        of_now: the batch size that the program has.
    """

    configuration: str
    device: str
    batch_size: int | None
    of_now: int


class MemoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan.

    Attributes:
        command: as typed.
        devices: planned for.
        peaks: one for each configuration and device.
        largest_batches: where the batch can be changed from outside.
        assumptions: what values that nobody has were taken to be; they widen the intervals.
        method: how it was found.
    """

    command: tuple[str, ...]
    devices: tuple[PlannedDevice, ...]
    peaks: tuple[PlannedPeak, ...]
    largest_batches: tuple[LargestBatch, ...] = ()
    assumptions: tuple[str, ...] = ()
    method: str = ""
