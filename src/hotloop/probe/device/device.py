"""The few questions that are asked of an accelerator, and the answers of those that torch reaches by `torch.cuda`.

A program may train on `cuda:1` without ever calling `set_device`: what is asked without an index is asked of device 0,
and nothing is there. So every question names the devices that this process really uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Marker(Protocol):
    """An event of the device, as `torch.cuda.Event(enable_timing=True)` is one."""

    def record(self, stream: Any) -> None:
        """Put it into a stream."""

    def query(self) -> bool:
        """Whether the device has passed it."""

    def elapsed_time(self, end_event: Any, /) -> float:
        """Return the milliseconds from this event to another, as a 32-bit float."""


class Device(Protocol):
    """What is asked of a device."""

    def marker(self) -> Marker:
        """Make an event."""

    def stream(self) -> Any:
        """Return the stream that is current on the device on which the root module lives."""

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph: it then takes no event and answers no question."""

    def synchronize(self) -> None:
        """Wait for every device that this process uses; nothing while a graph is captured."""


class Cuda:
    """The devices that torch reaches by `torch.cuda`: NVIDIA's and AMD's.

    Args:
        cuda: `torch.cuda`.
        home: returns the index of the device on which the root module lives; None: not known.
    """

    def __init__(self, cuda: Any, home: Callable[[], int | None] = lambda: None) -> None:
        self._cuda = cuda
        self._home = home

    def in_use(self) -> bool:
        """Whether the program has started the driver; a question before that would start it."""
        return bool(self._cuda.is_initialized())

    def indices(self) -> list[int]:
        """Return the devices that this process uses: those on which torch has memory or the root module lives."""
        if not self.in_use():
            return []
        home = self._home()
        return [
            index
            for index in range(self._cuda.device_count())
            if index == home or self._cuda.memory_reserved(index) > 0
        ]

    def marker(self) -> Marker:
        """Make an event."""
        event: Marker = self._cuda.Event(enable_timing=True)
        return event

    def stream(self) -> Any:
        """Return the stream that is current on the device on which the root module lives."""
        return self._cuda.current_stream(self._home())

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph."""
        return bool(self._cuda.is_current_stream_capturing())

    def synchronize(self) -> None:
        """Wait for every device that this process uses; nothing while a graph is captured."""
        if not self.in_use() or self.capturing():
            return
        for index in self.indices():
            self._cuda.synchronize(index)

    def peak_bytes(self) -> int | None:
        """Return the most that tensors took on any device; None: there is none in use."""
        return max((self._cuda.max_memory_allocated(index) for index in self.indices()), default=None)

    def memory(self) -> list[dict[str, Any]]:
        """Return, for each device in use, what this process holds and what the device has (see `DeviceMemory`)."""
        return [self._memory(index) for index in self.indices()]

    def pinned_bytes(self) -> int | None:
        """Return the most that the allocator of pinned buffers held; None: no device in use, or torch does not tell."""
        stats = getattr(self._cuda, "host_memory_stats", None)
        return stats().get("allocated_bytes.peak") if stats is not None and self.in_use() else None

    def _memory(self, index: int) -> dict[str, Any]:
        cuda = self._cuda
        free, total = cuda.mem_get_info(index)
        stats = cuda.memory_stats(index)
        properties = cuda.get_device_properties(index)
        return {
            "index": index,
            "uuid": str(getattr(properties, "uuid", "")) or None,
            "name": properties.name,
            "capability": (properties.major, properties.minor),
            "total_bytes": total,
            "free_bytes": free,
            "reserved_bytes": cuda.memory_reserved(index),
            "peak_reserved_bytes": cuda.max_memory_reserved(index),
            "peak_bytes": cuda.max_memory_allocated(index),
            "inactive_split_bytes": stats.get("inactive_split_bytes.all.peak"),
            "num_alloc_retries": stats.get("num_alloc_retries", 0),
        }


def root_device(roots: list[dict[str, Any]]) -> int | None:
    """Return the first device on which a root module has parameters; None: none has any."""
    return next((index for root in roots for index in root["accelerators"]), None)
