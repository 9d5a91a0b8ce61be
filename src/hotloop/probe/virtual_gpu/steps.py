"""The order of the virtual run: the program as it is, each configuration for some steps, the largest batch."""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from hotloop.probe.virtual_gpu.batch_search import BatchSearch, Peaks
from hotloop.probe.virtual_gpu.computed import Computed
from hotloop.probe.virtual_gpu.configurations import Configuration, repeated_blocks
from hotloop.probe.virtual_gpu.corrections import DeviceKernels
from hotloop.probe.virtual_gpu.look import Look
from hotloop.probe.virtual_gpu.replay import Events, alive_at, replay, summed
from hotloop.probe.virtual_gpu.storages import Storages
from hotloop.probe.virtual_gpu.training import Training

BASE_STEPS = 3
"""Optimizer state appears in the first; gradients of one step may live into the next forward."""
STEPS_EACH = 2
"""The last of them counts: in the first, batches and outputs of the configuration before may still be alive."""
WRITTEN_EVERY_S = 1.0
SEARCH_S = 20.0
"""Time after which no further batch is tried; what was seen to fit by then is told as at least that."""
SHARDED = "the program shards its model itself"
NO_INPUT = "the model is given no tensor that tells the size of the batch"
NO_BATCH = "the batch is made on the device: its size is the program's own"


class VirtualSteps:
    """Goes through the configurations, a few steps each.

    Args:
        order: `{"configurations", "computed", "rooms", "errors", "known", "look_s", "workspace"}`: what runs, the
            program as it is first; what is computed from one that ran; bytes of the devices that the largest batch is
            sought for; the estimator's errors; batches known before; seconds of a look, in place of all else.
        storages: what was allocated.
        training: tells steps and classes.
        kernels: of the device.
        folder: where the report goes.
    """

    def __init__(
        self,
        order: dict[str, Any],
        storages: Storages,
        training: Training,
        kernels: DeviceKernels,
        folder: Path,
    ) -> None:
        self._order = order
        self._todo = [Configuration(each, training, kernels) for each in order["configurations"]]
        self._kernels = kernels
        self._storages = storages
        self._training = training
        self._workspace: int = order["workspace"]
        self._folder = folder
        self._steps = 0
        self._started_at = 0
        """Event from which the current configuration is accounted for."""
        self._kept: list[int] = []
        """Storages that were alive then."""
        self.done: list[dict[str, Any]] = []
        self._by_batch = {int(size): Peaks(*peaks) for size, peaks in order.get("known", {}).items()}
        self._searches: dict[int, BatchSearch] = {}
        self._search_until: float | None = None
        self._began_at = time.monotonic()
        """The current configuration."""
        self._latest_batch = 0
        self._finished = False
        self._written_at = 0.0
        self.assumptions: Callable[[], set[str]] = set
        self._assumed: set[str] | None = None
        """By the configurations; a batch that is only searched for may be too large for its values to be kept."""
        self._looks_only = bool(order.get("look_s"))
        self.look = Look(order.get("look_s") or 0, storages, training, self._workspace)
        training.after_forward = self._write_now_and_then
        atexit.register(self.write)

    @property
    def current(self) -> Configuration | None:
        """The configuration that is on."""
        return self._todo[0] if self._todo and not self._looks_only else None

    def after_step(self) -> None:
        """Count a step; go on to the next configuration when one had its turn; end the process at the end."""
        if not self.done and self.look.after_step() and self._looks_only:
            self._end()
        current = self.current
        if current is None:
            return
        self._steps += 1
        if not self.done and self._steps == 1:
            self._began_at = time.monotonic()  # what came before was the program's start
        if self.done and self._steps == STEPS_EACH - 1:
            self._account_from_here()
        if self._steps < (STEPS_EACH if self.done else BASE_STEPS):
            return
        self._finish(current)
        self._training.watches_batch = False
        while self._todo or self._seek():
            self._steps = 0
            self._account_from_here()
            self._began_at = time.monotonic()
            self._todo[0].on()
            if self._todo[0].missing is None:
                return
            self._finish(self._todo[0])
        self._end()

    def _account_from_here(self) -> None:
        self._started_at, self._kept = len(self._storages.events), self._storages.live()

    def _write_now_and_then(self) -> None:
        if not self.done and time.monotonic() - self._written_at > WRITTEN_EVERY_S:
            self.write()

    def _end(self) -> None:
        self._finished = True
        self.write()
        os._exit(0)

    def _finish(self, configuration: Configuration) -> None:
        configuration.off()
        self._todo.pop(0)
        events = self._storages.events[self._started_at :]
        account = self._account(configuration, events)
        batch = configuration.order.get("tried")
        if "peak_reserved_bytes" in account and self._of_batch(configuration) is not None:
            peaks = Peaks(account["peak_allocated_bytes"], account["peak_reserved_bytes"])
            self._latest_batch = self._of_batch(configuration) or 0
            self._by_batch[self._latest_batch] = peaks
        if batch is None:
            self.done.append(
                {"name": configuration.order["name"], "missing": configuration.missing, **account}
            )
            if configuration.missing is None:
                self._compute(configuration.order["name"], events)
        self.write()

    def _of_batch(self, configuration: Configuration) -> int | None:
        """Return the batch size of a configuration that differs in nothing else; None: it does."""
        size, order = self._training.batch_size, configuration.order
        plain = not any(order.get(key) for key in ("precision", "checkpointing", "attention"))
        if size is None or not plain or order.get("accumulation", 1) != 1:
            return None
        tried: int | None = order.get("tried")
        return tried if tried is not None else round(size * order.get("batch", 1))

    def _account(self, configuration: Configuration, events: Events) -> dict[str, Any]:
        if configuration.missing is not None:
            return {}
        factor = configuration.order.get("batch", 1) / configuration.order.get("accumulation", 1)
        if (factor != 1 or "tried" in configuration.order) and not configuration.num_resized:
            return {"missing": NO_BATCH if self._training.batch_size is not None else NO_INPUT}
        kept = [(number, self._storages.records[number].num_bytes) for number in self._kept]
        return self._replayed(kept, events)

    def _replayed(self, kept: Events, events: Events) -> dict[str, Any]:
        peaks = replay(kept, events, self._workspace)
        live = alive_at(kept, events, peaks.at)
        return {
            "peak_allocated_bytes": peaks.allocated,
            "peak_reserved_bytes": peaks.reserved,
            "held": summed(live, self._storages.records, self._training.class_of),
        }

    def _compute(self, name: str, events: list[tuple[int, int]]) -> None:
        """Account for what is computed from the configuration that has just run."""
        for order in self._order.get("computed", ()):
            if order["of"] != name:
                continue
            if order.get("states") and not self._training.states:
                self.done.append({"name": order["name"], "missing": "the optimizer keeps no state"})
                continue
            if (order.get("sharded") or order.get("buckets")) and any(map(is_sharded, self._training.roots)):
                self.done.append({"name": order["name"], "missing": SHARDED})
                continue
            has_buckets = any(
                type(root).__name__ == "DistributedDataParallel" for root in self._training.roots
            )
            wanted = {**order, "buckets": False} if has_buckets else order  # they are in the account
            computed = Computed(wanted, self._storages.records, self._training.class_of, self._groups())
            self.done.append(
                {"name": order["name"], **self._replayed(*computed.sequences(self._kept, events))}
            )

    def _groups(self) -> tuple[int, int, int]:
        """Return bytes of the parameters outside repeated blocks, of the largest block, and of what one trains."""
        roots = self._training.roots
        blocks = [block for root in roots for block in repeated_blocks(root)]
        sizes = [_bytes_of(block.parameters()) for block in blocks]
        outside = sum(_bytes_of(root.parameters()) for root in roots) - sum(sizes)
        return (
            outside,
            max(sizes, default=0),
            max((_bytes_of(_trained(each)) for each in blocks or roots), default=0),
        )

    def _seek(self) -> bool:
        """Put the next batch to try, for any device, into the queue; return whether there is one."""
        size = self._training.batch_size
        if size is None or len(self._by_batch) < 2:
            return False
        now = time.monotonic()
        self._assumed = set(self.assumptions()) if self._assumed is None else self._assumed
        self._search_until = self._search_until or now + SEARCH_S
        left_s, took_s = self._search_until - now, max(now - self._began_at, 1e-3)
        if left_s <= 0:
            return False
        # A program may loop over the samples of its batch: then steps take longer as it grows.
        most = self._latest_batch * left_s / took_s
        error = self._order["errors"][bool(self._assumed)]
        for room in self._order.get("rooms", ()):
            if room not in self._searches:
                self._searches[room] = BatchSearch(room / (1 + error), self._by_batch)
            wanted = self._searches[room].next_size(max(most, size))
            if wanted is not None:
                tried = {"name": f"batch {wanted}", "batch": wanted / size, "tried": wanted}
                self._todo.append(Configuration(tried, self._training, self._kernels))
                return True
        return False

    def _largest(self) -> list[dict[str, Any]]:
        found = []
        for room, search in self._searches.items():
            fits, too_large = search.found()
            found.append({"room": room, "fits": fits, "too_large": too_large})
        return found

    def write(self) -> None:
        """Write what is known by now."""
        self._written_at = time.monotonic()
        path = self._folder / f"virtual-{os.getpid()}.json"
        report: dict[str, Any] = {
            "configurations": self.done,
            "assumptions": sorted(self.assumptions() if self._assumed is None else self._assumed),
            "batch_size": self._training.batch_size,
            "num_steps": self._training.num_steps,
            "largest": self._largest(),
            "by_batch": {
                size: (peaks.allocated, peaks.reserved) for size, peaks in sorted(self._by_batch.items())
            },
            "finished": self._finished,
        }
        if not self.done and self._storages.events:
            report["look"] = self.look.report()
        made = path.with_suffix(".part")
        made.write_text(json.dumps(report))
        made.replace(path)


def is_sharded(root: Any) -> bool:
    """Whether the parameters of a model are shards: of FSDP2 or a tensor-parallel plan, or flat ones of FSDP."""
    wrapped = any(type(module).__name__ == "FullyShardedDataParallel" for module in root.modules())
    return wrapped or any(is_traceable_wrapper_subclass(each) for each in root.parameters())


def _bytes_of(parameters: Iterable[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in parameters)


def _trained(module: Any) -> Iterator[Any]:
    return (each for each in module.parameters() if each.requires_grad)
