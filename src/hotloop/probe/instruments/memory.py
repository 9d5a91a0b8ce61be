"""Memory over a step: every allocation of torch's, the module and the line it was made in, and what it is for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from time import monotonic_ns
from typing import Any, NamedTuple

from hotloop.probe.device.memory_history import MemoryHistory, memory_history
from hotloop.probe.instruments.dispatch_mode import remove_mode
from hotloop.probe.instruments.engine_passes import watch_engine
from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.instruments.module_calls import ModuleCalls
from hotloop.probe.instruments.module_sizes import ModuleSizes
from hotloop.probe.instruments.storage_classes import GRADIENTS, STATE, StorageClasses
from hotloop.probe.instruments.torch_profiler import TorchProfiler
from hotloop.probe.probe import Probe
from hotloop.probe.record.result_file import packed
from hotloop.probe.record.viewer_snapshot import snapshot_path


class _Allocation(NamedTuple):
    """An allocation, or with a negative size a release."""

    time_ns: int
    address: int
    size: int
    total: int
    """What the allocator has given out, after it."""


class Memory(Instrument):
    """What tensors take, moment by moment, by torch's own account of its allocators.

    Where code is compiled modules and lines are not told apart: hooks, and a mode of the dispatcher, would have it
    compiled anew.

    Args:
        probe: the probe.
    """

    min_steps = 2
    max_steps = 3
    seconds = 0.2
    profiles = True

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler = TorchProfiler(probe, "memory")
        self._sizes = ModuleSizes()
        self._calls = ModuleCalls(probe, self._sizes)
        self._ends_ns: list[int] = []
        self._classes = StorageClasses()
        self._base: list[dict[str, Any]] = []
        self._marks: list[list[Any]] = []
        """Time, class, addresses: what is there for what at that moment."""
        self._operations: Any = None
        self._mode: Any = None
        self._engine: Callable[[], None] | None = None
        self._history: MemoryHistory | None = None

    def start(self) -> None:
        """Start the profiler, then the hooks.

        Raises:
            Unavailable: the program has a profiler of its own.
        """
        self._profiler.start(profile_memory=True)
        with self.probe.survive("memory:snapshot"):
            self._record()
        with self.probe.survive("memory:tensors"):
            self._base = self._classes.all_tensors()
        self._ends_ns = [monotonic_ns()]
        if not self.probe.compiles():
            self._calls.start()
            self._watch()

    def step(self) -> None:
        """Note when it ended, and what is there then."""
        self._ends_ns.append(monotonic_ns())
        self._mark_gradients()
        with self.probe.survive("memory:state"):
            self._marks.append([monotonic_ns(), STATE, self._classes.states()])

    def stop(self) -> Any:
        """Return the allocations in order, the calls of modules, and what each holds all the time."""
        self._leave()
        with self.probe.survive("memory:snapshot"):
            self._dump()
        profiler = self._profiler.stop()
        device, own = _busiest(_allocations(profiler.kineto_results.experimental_event_tree()))
        return {
            "device": device,
            "base_bytes": own[0].total - own[0].size if own and device != "cpu" else None,
            "times_ns": packed("q", (self._profiler.monotonic_ns(each.time_ns) for each in own)),
            "addresses": packed("Q", (each.address for each in own)),
            "sizes": packed("q", (each.size for each in own)),
            "ends_ns": self._ends_ns,
            "calls": self._calls.value(),
            "modules": self._sizes.value(),
            "base": self._base,
            "marks": self._marks,
            "releases": self._classes.releases,
            "operations": self._operations.value() if self._operations is not None else None,
        }

    def after_fork(self) -> None:
        """Leave a forked child's modules alone."""
        self._leave()

    def _record(self) -> None:
        self._history = memory_history() if self.probe.config.memory_snapshot else None
        if self._history is not None:
            self._history.start()

    def _dump(self) -> None:
        if self._history is not None and self.probe.folder is not None:
            self._history.dump(snapshot_path(self.probe.folder, os.getpid()))
            self._history.stop()

    def _watch(self) -> None:
        from torch.utils._python_dispatch import _push_mode

        from hotloop.probe.instruments.memory_operations import MemoryOperations, operations_mode

        self._engine = watch_engine(lambda: True, self._mark_gradients)
        self._operations = MemoryOperations(self.probe)
        self._mode = operations_mode(self._operations)
        _push_mode(self._mode)

    def _mark_gradients(self) -> None:
        with self.probe.survive("memory:gradients"):
            self._marks.append([monotonic_ns(), GRADIENTS, self._classes.gradients()])

    def _leave(self) -> None:
        self._calls.stop()
        if self._mode is not None:
            remove_mode(self._mode)
            self._mode = None
        if self._engine is not None:
            self._engine()
            self._engine = None
        self._classes.let_go()


def _allocations(events: Iterable[Any]) -> dict[str, list[_Allocation]]:
    """Return them by device, as they stand in the profiler's tree."""
    from torch._C._profiler import _EventType

    found: dict[str, list[_Allocation]] = {}
    pending = list(events)
    while pending:
        event = pending.pop()
        pending += event.children
        kind, fields = event.typed
        if kind == _EventType.Allocation:
            each = _Allocation(event.start_time_ns, fields.ptr, fields.alloc_size, fields.total_allocated)
            found.setdefault(str(fields.device), []).append(each)
    return found


def _busiest(found: dict[str, list[_Allocation]]) -> tuple[str | None, list[_Allocation]]:
    """Return the device whose memory is told of: an accelerator before the host; of several the one used most."""
    device = max(
        found,
        key=lambda name: (name != "cpu", sum(abs(each.size) for each in found[name])),
        default=None,
    )
    return device, sorted(found[device]) if device is not None else []
