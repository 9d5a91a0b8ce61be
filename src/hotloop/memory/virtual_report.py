"""What is asked of a virtual run, and what it reports."""

from __future__ import annotations

import msgspec

from hotloop.memory.computed import ComputedConfiguration
from hotloop.memory.configurations import PlannedConfiguration
from hotloop.model.memory_plan import Held


class VirtualPeak(msgspec.Struct, frozen=True, kw_only=True):
    """What one configuration gave."""

    name: str
    missing: str | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    held: Held = Held()


class FoundBatch(msgspec.Struct, frozen=True, kw_only=True):
    """The largest batch for a room of some bytes, by steps at every batch that was tried.

    Attributes:
        room: bytes for the allocator.
        fits: the largest that was seen to fit; 0: none was.
        too_large: the smallest larger one that was seen not to; None: none was.
    """

    room: int
    fits: int
    too_large: int | None = None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The program as it is over more steps (`probe.virtual_gpu.look`)."""

    num_steps: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    step: int
    phase: str
    line: str | None = None
    held: Held = Held()
    grows_bytes: float | None = None
    growing_line: str | None = None
    sizes: tuple[int, ...] = ()
    num_epochs: int = 0


class VirtualReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a training process wrote (`probe.virtual_gpu.steps`)."""

    configurations: tuple[VirtualPeak, ...] = ()
    assumptions: tuple[str, ...] = ()
    batch_size: int | None = None
    num_steps: int = 0
    largest: tuple[FoundBatch, ...] = ()
    by_batch: dict[str, tuple[int, int]] = {}
    """Allocated and reserved peaks by batch size."""
    look: Look | None = None
    later_failure: str | None = None
    """How the program ended in the look, where it failed."""
    finished: bool = False


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the virtual runs.

    Attributes:
        configurations: that run, the program as it is first.
        computed: from the account of one that ran.
        rooms: bytes for the allocator on the devices that the largest batch is sought for.
        errors: relative error of the estimator, without and with assumed values.
        look_s: seconds of a look at the program as it is; None: none.
        known: peaks of batches that were tried before.
    """

    configurations: tuple[PlannedConfiguration, ...]
    computed: tuple[ComputedConfiguration, ...] = ()
    rooms: tuple[int, ...] = ()
    errors: tuple[float, float] = (0.0, 0.0)
    look_s: float | None = None
    known: dict[str, tuple[int, int]] = {}

    @property
    def names(self) -> list[str]:
        """Names of all configurations, in the order of the table."""
        return [*(each.name for each in self.configurations), *(each.name for each in self.computed)]
