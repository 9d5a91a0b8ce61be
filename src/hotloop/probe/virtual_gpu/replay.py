"""A sequence of allocations through the caching allocator: its peaks, and what was alive at the larger one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.probe.virtual_gpu.caching_allocator import CachingAllocator
from hotloop.probe.virtual_gpu.storages import Record

MOST_NAMED = 12
WORKSPACE = -1
"""Key of cuBLAS's workspace; what is not a storage has a negative one."""

Events = Sequence[tuple[int, int]]
"""`(key, bytes)` of what is allocated, `(key, -bytes)` of what is freed; a storage of no bytes is allocated with 0."""


@dataclass(frozen=True)
class Replayed:
    """The peaks of a sequence.

    Attributes:
        allocated: in bytes, as the allocator counts them.
        reserved: in bytes.
        at: index of the event that reached the peak of `allocated`; -1: it was there before.
    """

    allocated: int
    reserved: int
    at: int


def replay(kept: Sequence[tuple[int, int]], events: Events, workspace: int) -> Replayed:
    """Return the peaks.

    Args:
        kept: what is there before, `(key, bytes)`, the oldest first.
        events: what is allocated and freed then.
        workspace: bytes that are there in any case.
    """
    allocator = CachingAllocator()
    live: set[int] = set()
    for key, num_bytes in ((WORKSPACE, workspace), *kept):
        allocator.allocate(key, num_bytes)
        live.add(key)
    allocator.reset_peaks()
    at = -1
    for index, (key, change) in enumerate(events):
        if key not in live and change >= 0:
            before = allocator.peak_allocated
            allocator.allocate(key, change)
            live.add(key)
            if allocator.peak_allocated > before:
                at = index
        elif key in live:
            allocator.free(key)
            live.discard(key)
    return Replayed(allocator.peak_allocated, allocator.peak_reserved, at)


def alive_at(kept: Sequence[tuple[int, int]], events: Events, at: int) -> dict[int, int]:
    """Return the bytes of what is alive after the event of an index."""
    live = dict(kept)
    for key, change in events[: at + 1]:
        if key in live:
            del live[key]
        else:
            live[key] = change
    return live


def summed(live: dict[int, int], records: Sequence[Record], class_of: Callable[[int], str]) -> dict[str, Any]:
    """Return bytes by class; of activations and temporaries by module and by line, too."""
    classes: dict[str, int] = defaultdict(int)
    modules: dict[str, int] = defaultdict(int)
    lines: dict[str, int] = defaultdict(int)
    for key, num_bytes in live.items():
        if key < 0:
            classes["copies"] += num_bytes
            continue
        record, name = records[key], class_of(key)
        classes[name] += num_bytes
        if name in {"activations", "temporaries"}:
            modules[record.module] += num_bytes
            lines[record.line or ""] += num_bytes
    return {
        "by_class": {name: size for name, size in classes.items() if size},
        "by_module": _largest(modules.items()),
        "by_line": _largest(lines.items()),
    }


def _largest(sizes: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(sorted(sizes, key=lambda pair: -pair[1])[:MOST_NAMED])
