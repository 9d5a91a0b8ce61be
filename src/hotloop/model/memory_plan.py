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
        fits: whether reserved and outside fit on the device: yes, no, or unsure: within the interval, or it grows.
        held: what is alive at the peak.
        missing: why the configuration cannot be had in this program; None: it can.
        formula: where the numbers come from if the configuration did not run; None: it ran on the virtual GPU.
        time_ratio: time of a step over that of the program as it is; None: not measured, which a virtual GPU cannot.
    """

    configuration: str
    device: str
    allocated: Peak | None = None
    reserved: Peak | None = None
    fits: str | None = None
    held: Held | None = None
    missing: str | None = None
    formula: str | None = None
    time_ratio: float | None = None


class LargestBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The largest batch of one configuration that fits on a device.

    Attributes:
        batch_size: samples, seen to fit by steps on the virtual GPU; None: not even one fits.
        too_large: the smallest larger batch that was seen not to fit; None: none was seen.
        of_now: the batch size that the program has.
    """

    configuration: str
    device: str
    batch_size: int | None
    of_now: int
    too_large: int | None = None


class LaterPeak(msgspec.Struct, frozen=True, kw_only=True):
    """The program as it is over more steps.

    Attributes:
        num_steps: how many.
        allocated_bytes: the peak over all of them; the peak of `as it is` is the larger one of this and three steps.
        step: in which it was reached.
        phase: of that step: start, forward, backward, optimizer; between: outside of it, as evaluation is.
        line: that made the tensor which reached it.
        grows_bytes: more is alive after each step than after the one before, by this; None: it is not so.
        growing_line: that made most of what grows.
        sizes: the smallest and the largest number of elements of the model's input.
        whole_epoch: a loader came to its end, and training went on after it.
        failure: how the program ended, where it failed.
    """

    num_steps: int
    allocated_bytes: int
    step: int
    phase: str
    line: str | None = None
    grows_bytes: float | None = None
    growing_line: str | None = None
    sizes: tuple[int, ...] = ()
    whole_epoch: bool = False
    failure: str | None = None


class MemoryPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan.

    Attributes:
        command: as typed.
        devices: planned for.
        peaks: one for each configuration and device.
        largest_batches: where the batch can be changed from outside.
        later: what more steps of the program as it is showed; None: there were none.
        assumptions: what values that nobody has were taken to be; they widen the intervals.
        method: how it was found.
    """

    command: tuple[str, ...]
    devices: tuple[PlannedDevice, ...]
    peaks: tuple[PlannedPeak, ...]
    largest_batches: tuple[LargestBatch, ...] = ()
    later: LaterPeak | None = None
    assumptions: tuple[str, ...] = ()
    method: str = ""
