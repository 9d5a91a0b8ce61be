"""Streams, events, graphs, and the part of `torch.cuda` that our code asks."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.simulated_device.memory import GIB, Memory

MS = 1_000_000
LAUNCH_MS = 0.01
QUEUE = 1024
"""Kernels that a stream takes before a launch waits: as CUDA's streams were seen to."""
NOT_PERMITTED = "CUDA error: operation not permitted when stream is capturing"


@dataclass
class Host:
    """The host's clock."""

    ns: int = 0

    def work(self, ms: float) -> None:
        self.ns += round(ms * MS)

    def clock(self) -> int:
        return self.ns


@dataclass
class Stream:
    """Works off what it is given, in order; streams of one device do not wait for one another."""

    cuda: SimulatedCuda
    device: int
    ready_ns: int = 0
    """When it has done all that it was given."""
    queue: deque[int] = field(default_factory=deque)
    """When each kernel that it was given will be done."""

    def launch(self, ms: float, launch_ms: float = LAUNCH_MS) -> None:
        cuda = self.cuda
        cuda.host.work(launch_ms)
        graph = cuda.captured
        if graph is not None and graph.stream is self:
            graph.kernels.append(ms)
            return
        while self.queue and self.queue[0] <= cuda.host.ns:
            self.queue.popleft()
        if len(self.queue) >= QUEUE:
            cuda.host.ns = max(cuda.host.ns, self.queue.popleft())
        self.ready_ns = max(self.ready_ns, cuda.host.ns) + round(ms * MS)
        self.queue.append(self.ready_ns)

    def synchronize(self) -> None:
        self.cuda.host.ns = max(self.cuda.host.ns, self.ready_ns)

    def wait_stream(self, other: Stream) -> None:
        self.ready_ns = max(self.ready_ns, other.ready_ns)

    def wait_event(self, event: Event) -> None:
        self.ready_ns = max(self.ready_ns, event.at_ns)

    def record_event(self) -> Event:
        event = Event(self.cuda)
        event.record(self)
        return event


@dataclass
class Event:
    """An event with timing."""

    cuda: SimulatedCuda
    stream: Stream | None = None
    at_ns: int = 0

    def record(self, stream: Stream | None = None) -> None:
        if self.cuda.fails:
            raise RuntimeError("CUDA error: unspecified launch failure")
        stream = stream or self.cuda.current_stream()
        if self.cuda.captured is not None and self.cuda.captured.stream is stream:
            raise RuntimeError(NOT_PERMITTED)
        self.stream, self.at_ns = stream, max(self.cuda.host.ns, stream.ready_ns)

    def query(self) -> bool:
        self.cuda.check_not_capturing()
        return self.at_ns <= self.cuda.host.ns

    def synchronize(self) -> None:
        self.cuda.check_not_capturing()
        self.cuda.host.ns = max(self.cuda.host.ns, self.at_ns)

    def elapsed_time(self, end_event: Event) -> float:
        if self.stream is None or end_event.stream is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self.stream.device != end_event.stream.device:
            raise RuntimeError("CUDA error: invalid resource handle")
        ms = (end_event.at_ns - self.at_ns) / MS
        single: float = struct.unpack("f", struct.pack("f", ms))[0]
        return single


@dataclass
class Graph:
    """A captured sequence of kernels; a replay is one launch."""

    cuda: SimulatedCuda
    stream: Stream
    kernels: list[float] = field(default_factory=list)

    def replay(self) -> None:
        self.stream.launch(sum(self.kernels))


@dataclass
class Properties:
    """What `get_device_properties` gives."""

    name: str
    uuid: str
    total_memory: int
    major: int = 9
    minor: int = 0


class SimulatedCuda:
    """The part of `torch.cuda` that our code asks.

    Args:
        num: devices.
        total_gib: memory of each.
    """

    def __init__(self, num: int = 1, total_gib: float = 80.0) -> None:
        self.host = Host()
        self.memories = [Memory(index, round(total_gib * GIB)) for index in range(num)]
        self.defaults = [Stream(self, index) for index in range(num)]
        self.streams = list(self.defaults)
        self._current = list(self.defaults)
        self._device = 0
        self.captured: Graph | None = None
        self.num_events = 0
        self.synchronized: list[int] = []
        self.fails = False
        self.pinned_bytes = 0
        """That the allocator of pinned buffers holds."""

    # torch.cuda ----------------------------------------------------------------------------------------------------

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return len(self.memories)

    def current_stream(self, device: int | None = None) -> Stream:
        return self._current[self._device if device is None else device]

    def is_current_stream_capturing(self) -> bool:
        return self.captured is not None and self.captured.stream is self.current_stream()

    def synchronize(self, device: int | None = None) -> None:
        self.check_not_capturing()
        index = self._device if device is None else device
        self.synchronized.append(index)
        for stream in self.streams:
            if stream.device == index:
                stream.synchronize()

    def Event(self, *, enable_timing: bool = False) -> Event:  # noqa: N802 - torch's name
        assert enable_timing
        self.num_events += 1
        return Event(self)

    def memory_reserved(self, device: int) -> int:
        return self.memories[device].reserved

    def max_memory_reserved(self, device: int) -> int:
        return self.memories[device].peak_reserved

    def max_memory_allocated(self, device: int) -> int:
        return self.memories[device].peak_allocated

    def memory_stats(self, device: int) -> dict[str, int]:
        memory = self.memories[device]
        return {
            "num_alloc_retries": memory.num_retries,
            "inactive_split_bytes.all.peak": memory.peak_inactive_split,
        }

    def host_memory_stats(self) -> dict[str, int]:
        return {"allocated_bytes.peak": self.pinned_bytes}

    def mem_get_info(self, device: int) -> tuple[int, int]:
        memory = self.memories[device]
        return memory.free, memory.total

    def get_device_properties(self, device: int) -> Properties:
        return Properties("Simulated H100", f"GPU-{device}", self.memories[device].total)

    def set_per_process_memory_fraction(self, fraction: float, device: int) -> None:
        assert 0 <= fraction <= 1
        self.memories[device].allowed = round(fraction * self.memories[device].total)

    # What a program does -------------------------------------------------------------------------------------------

    def Stream(self, device: int = 0) -> Stream:  # noqa: N802 - torch's name
        return self.new_stream(device)

    def new_stream(self, device: int = 0) -> Stream:
        stream = Stream(self, device)
        self.streams.append(stream)
        return stream

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self._current[stream.device] = self._current[stream.device], stream
        yield
        self._current[stream.device] = before

    @contextmanager
    def capture(self, stream: Stream) -> Iterator[Graph]:
        graph = Graph(self, stream)
        with self.stream(stream):
            self.captured = graph
            yield graph
            self.captured = None

    def check_not_capturing(self) -> None:
        """A capture in global mode forbids it on every stream."""
        if self.captured is not None:
            raise RuntimeError(NOT_PERMITTED)
