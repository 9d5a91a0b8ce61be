"""The most bytes that tensors on the host hold over a step, by torch's own account of its allocator.

The profiler tells of allocations within the window alone. So the sum is anchored at its end, where the tensors that
are there can be counted; what was there before and is released in the first step is not told of, so the peak is that of
the steps after it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from time import monotonic_ns
from typing import Any

from hotloop.probe.instruments.instrument import Instrument
from hotloop.probe.instruments.torch_profiler import TorchProfiler
from hotloop.probe.probe import Probe


class TensorPeak(Instrument):
    """Counts the bytes of tensors on the host, moment by moment.

    Args:
        probe: the probe.
    """

    min_steps = max_steps = 3
    seconds = 0.0
    profiles = True

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe)
        self._profiler = TorchProfiler(probe, "tensor_peak")
        self._first_end_ns = 0

    def start(self) -> None:
        """Start the profiler.

        Raises:
            Unavailable: the program has a profiler of its own.
        """
        self._profiler.start(profile_memory=True)

    def step(self) -> None:
        """Note when the first step ended."""
        self._first_end_ns = self._first_end_ns or monotonic_ns()

    def stop(self) -> dict[str, int]:
        """Return the peak, and what is held at the end."""
        held = live_bytes()
        profiler = self._profiler.stop()
        changes = sorted(
            (self._profiler.monotonic_ns(at), size)
            for at, size in _changes(profiler.kineto_results.experimental_event_tree())
        )
        return {"peak_bytes": peak_before(changes, held, self._first_end_ns), "held_bytes": held}


def peak_before(changes: Iterable[tuple[int, int]], held: int, since: int) -> int:
    """Return the most that was held from a moment on.

    Args:
        changes: time and bytes of each allocation, negative of a release; in order.
        held: after the last one.
        since: the moment.
    """
    peak = held
    for at, size in reversed(list(changes)):
        if at < since:
            break
        held -= size
        peak = max(peak, held)
    return peak


def live_bytes() -> int:
    """Return the bytes of all tensors on the host that Python knows of; what several share counts once."""
    return sum(dict(_storages()).values())


def _storages() -> Iterator[tuple[int, int]]:
    import torch

    for each in gc.get_objects():
        if not issubclass(type(each), torch.Tensor):
            continue
        for tensor in (each, each.grad if each.is_leaf else None):
            if tensor is not None and tensor.device.type == "cpu" and tensor.layout is torch.strided:
                try:
                    storage = tensor.untyped_storage()
                    yield storage.data_ptr(), storage.nbytes()
                except (
                    RuntimeError,
                    NotImplementedError,
                ):  # a tensor without a storage: fake, functional, wrapped
                    continue


def _changes(events: Iterable[Any]) -> Iterator[tuple[int, int]]:
    from torch._C._profiler import _EventType

    pending = list(events)
    while pending:
        event = pending.pop()
        pending += event.children
        kind, fields = event.typed
        if kind == _EventType.Allocation and str(fields.device) == "cpu":
            yield event.start_time_ns, fields.alloc_size
