"""The order of the virtual run: the program as it is, then each configuration for some steps, then the report."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator, OutOfMemory
from hotloop.probe.virtual_gpu.configurations import Configuration
from hotloop.probe.virtual_gpu.corrections import DeviceKernels
from hotloop.probe.virtual_gpu.storages import Record, Storages
from hotloop.probe.virtual_gpu.training import Training

BASE_STEPS = 3
"""Optimizer state appears in the first; gradients of one step may live into the next forward."""
STEPS_EACH = 2
MOST_NAMED = 12


class VirtualSteps:
    """Goes through the configurations, a few steps each.

    Args:
        orders: of the configurations; the first is the program as it is.
        storages: what was allocated.
        training: tells steps and classes.
        kernels: of the device.
        workspace: bytes of cuBLAS's workspace, which torch allocates at the first product.
        folder: where the report goes.
    """

    def __init__(
        self,
        orders: list[dict[str, Any]],
        storages: Storages,
        training: Training,
        kernels: DeviceKernels,
        workspace: int,
        folder: Path,
    ) -> None:
        self._todo = [Configuration(order, training, kernels) for order in orders]
        self._storages = storages
        self._training = training
        self._workspace = workspace
        self._folder = folder
        self._steps = 0
        self._started_at = 0
        """Event with which the current configuration began."""
        self._kept: list[int] = []
        """Storages that were alive then."""
        self.done: list[dict[str, Any]] = []
        self.assumptions: set[str] = set()

    @property
    def current(self) -> Configuration | None:
        """The configuration that is on."""
        return self._todo[0] if self._todo else None

    def after_step(self) -> None:
        """Count a step; report and go on to the next configuration when it had its turn; end the process at the end."""
        current = self.current
        if current is None:
            return
        self._steps += 1
        if self._steps < (STEPS_EACH if self.done else BASE_STEPS):
            return
        self._finish(current)
        self._training.watches_batch = False
        while self._todo:
            self._steps, self._started_at, self._kept = 0, len(self._storages.events), self._storages.live()
            self._todo[0].on()
            if self._todo[0].missing is None:
                return
            self._finish(self._todo[0])
        self.write()
        os._exit(0)

    def _finish(self, configuration: Configuration) -> None:
        configuration.off()
        self.done.append(
            {**configuration.order, "missing": configuration.missing, **self._account(configuration)}
        )
        self._todo.pop(0)
        self.write()

    def _account(self, configuration: Configuration) -> dict[str, Any]:
        if configuration.missing is not None:
            return {}
        factor = configuration.order.get("batch", 1) / configuration.order.get("accumulation", 1)
        if factor != 1 and not configuration.num_resized:
            return {"missing": "the batch is made on the device: its size is the program's own"}
        events = self._storages.events[self._started_at :]
        return replay(self._kept, events, self._storages.records, self._workspace, self._class_of)

    def _class_of(self, number: int) -> str:
        training, record = self._training, self._storages.records[number]
        for name, numbers in (
            ("parameters", training.parameters),
            ("gradients", training.gradients),
            ("optimizer_state", training.states),
        ):
            if number in numbers:
                return name
        if record.operator == "_to_copy" and record.phase in {"start", "between"}:
            return "inputs"
        return "activations" if record.saved else "temporaries"

    def write(self) -> None:
        """Write what is known by now."""
        path = self._folder / f"virtual-{os.getpid()}.json"
        text = json.dumps(
            {
                "configurations": self.done,
                "assumptions": sorted(self.assumptions),
                "batch_size": self._training.batch_size,
            }
        )
        made = path.with_suffix(".part")
        made.write_text(text)
        made.replace(path)


def replay(
    kept: list[int], events: list[tuple[int, int]], records: list[Record], workspace: int, class_of: Any
) -> dict[str, Any]:
    """Return the peaks of a sequence of allocations, and what held the larger one.

    Args:
        kept: numbers of the storages that are there before, the oldest first.
        events: what is allocated and freed then.
        records: of all storages.
        workspace: bytes that are there in any case.
        class_of: a storage's class, by its number.
    """
    allocator = CachingAllocator()
    if workspace:
        allocator.allocate(-1, workspace)
    for number in kept:
        allocator.allocate(number, records[number].num_bytes)
    allocator.reset_peaks()
    live, at_peak = set(kept), set(kept)
    for number, change in events:
        if change >= 0 and number not in live:
            before = allocator.peak_allocated
            try:
                allocator.allocate(number, change)
            except OutOfMemory:
                break
            live.add(number)
            if allocator.peak_allocated > before:
                at_peak = set(live)
        elif change < 0 and number in live:
            allocator.free(number)
            live.discard(number)
    return {
        "peak_allocated_bytes": allocator.peak_allocated,
        "peak_reserved_bytes": allocator.peak_reserved,
        "held": _summed(at_peak, records, class_of),
    }


def _summed(numbers: set[int], records: list[Record], class_of: Any) -> dict[str, Any]:
    """Return the bytes of some storages by class; of activations and temporaries by module and by line, too."""
    classes: dict[str, int] = defaultdict(int)
    modules: dict[str, int] = defaultdict(int)
    lines: dict[str, int] = defaultdict(int)
    for number in numbers:
        record, name = records[number], class_of(number)
        classes[name] += record.num_bytes
        if name in {"activations", "temporaries"}:
            modules[record.module] += record.num_bytes
            lines[record.line or ""] += record.num_bytes
    return {"by_class": dict(classes), "by_module": _largest(modules), "by_line": _largest(lines)}


def _largest(sizes: dict[str, int]) -> dict[str, int]:
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1])[:MOST_NAMED])
