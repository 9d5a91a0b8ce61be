"""Memory over a step: every allocation of torch's, and which module it was made in."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic_ns
from typing import Any, NamedTuple

from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.instruments.module_calls import ModuleCalls
from hotloop.probe.instruments.module_sizes import ModuleSizes
from hotloop.probe.instruments.torch_profiler import TorchProfiler
from hotloop.probe.probe import Probe
from hotloop.probe.record.result_file import packed


class _Allocation(NamedTuple):
    """An allocation, or with a negative size a release."""

    time_ns: int
    address: int
    size: int
    total: int
    """What the allocator has given out, after it."""


class Memory(Instrument):
    """What tensors take, moment by moment, by torch's own account of its allocators.

    Where code is compiled modules are not told apart: hooks on them would have it compiled anew.

    Args:
        probe: the probe.
    """

    min_steps = 2
    max_steps = 3
    seconds = 0.2

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler = TorchProfiler(probe, "memory")
        self._sizes = ModuleSizes()
        self._calls = ModuleCalls(probe, self._sizes)
        self._ends_ns: list[int] = []

    def start(self) -> None:
        """Start the profiler, then the hooks.

        Raises:
            Unavailable: the program has a profiler of its own.
        """
        self._profiler.start(profile_memory=True)
        self._ends_ns = [monotonic_ns()]
        if not self.probe.compiles():
            self._calls.start()

    def step(self) -> None:
        """Note when it ended."""
        self._ends_ns.append(monotonic_ns())

    def stop(self) -> Any:
        """Return the allocations in order, the calls of modules, and what each holds all the time."""
        self._calls.stop()
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
        }

    def after_fork(self) -> None:
        """Leave a forked child's modules alone."""
        self._calls.stop()


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
