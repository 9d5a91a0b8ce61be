"""Streams, events, graphs and generators of a device that is not there: nothing is ever under way on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

_RANGES = (
    *("rangePushA", "rangePop", "rangeStartA", "rangeEnd", "markA"),
    *("deviceRangeStart", "deviceRangeEnd"),
)
"""Of NVTX, as `torch.cuda.nvtx` calls them."""


class Stream:
    """A stream of a device that does nothing."""

    device = torch.device("cuda", 0)
    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        """Nothing changes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing changes."""

    def synchronize(self) -> None:
        """Nothing is under way."""

    def wait_stream(self, _: Any) -> None:
        """Nothing is under way."""

    wait_event = wait_stream

    def record_event(self, event: Any = None) -> Any:
        """Return the event: nothing is under way."""
        return Event() if event is None else event

    def is_capturing(self) -> bool:
        """Nothing is captured."""
        return False

    def query(self) -> bool:
        """Everything is done."""
        return True


class Event(Stream):
    """An event of a stream; no time passes between two."""

    def record(self, *_: Any) -> None:
        """Nothing is under way."""

    def elapsed_time(self, _: Any) -> float:
        """Return milliseconds: nobody knows."""
        return 1.0

    def wait(self, *_: Any) -> None:
        """Nothing is under way."""


class Generator(torch.Generator):  # type: ignore[misc]  # torch has no types here
    """A generator of the device; its numbers are nobody's."""

    def __new__(cls, device: Any = "cpu") -> Any:
        """Make one, on the CPU as every part of this device."""
        made = super().__new__(cls, "cpu")
        made.there = torch.device(device)
        return made

    @property
    def device(self) -> torch.device:
        """The device that it was asked for."""
        where: torch.device = self.there
        return where


class Graph:
    """A CUDA graph: what is captured runs once, and a replay allocates nothing."""

    def pool(self) -> tuple[int, int]:
        """Return the number of its memory pool."""
        return (0, 0)

    def replay(self) -> None:
        """Nothing is allocated."""

    capture_end = reset = replay

    def capture_begin(self, *_: Any, **__: Any) -> None:
        """What follows runs as it is."""


class Selected(contextlib.AbstractContextManager["Selected"]):
    """`torch.cuda.device`: the device that a part of the program is for."""

    def __init__(self, device: Any = None) -> None:
        self.idx = 0 if device is None else torch.device("cuda", getattr(device, "index", device) or 0).index

    def __exit__(self, *_: object) -> None:
        """Nothing changes."""


@contextlib.contextmanager
def _inside(*_: Any, **__: Any) -> Iterator[None]:
    yield


def put_into(cuda: Any) -> None:
    """Have `torch.cuda` offer them."""
    cuda.Stream, cuda.Event, cuda.stream, cuda.device = Stream, Event, _inside, Selected
    cuda.CUDAGraph, cuda.graph, cuda.graph_pool_handle = Graph, _inside, lambda: (0, 0)
    cuda.make_graphed_callables = lambda callables, *_, **__: callables
    cuda.nvtx._nvtx = SimpleNamespace(**dict.fromkeys(_RANGES, lambda *_: 0))
    whole: Any = torch
    whole.Generator = Generator
    whole.Tensor.pin_memory = lambda tensor, *_: tensor
    whole.Tensor.record_stream = lambda *_: None
    if not hasattr(torch._C, "_scatter"):  # of DataParallel over one device
        parts: Any = torch._C
        parts._scatter = lambda tensor, *_: (tensor.to("cuda"),)
        parts._gather = lambda tensors, *_: torch.cat(tensors)
