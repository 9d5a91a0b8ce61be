"""A snapshot of memory in the form of `torch.cuda.memory._dump_snapshot`, for torch's viewer (pytorch.org/memory_viz).

On a CUDA device torch makes it. Of a host's memory torch keeps no history: here each block of tensors is a segment of
its own, allocated and released by the operations that were seen.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_ALLOCATED = ("segment_alloc", "alloc")
_RELEASED = ("free_requested", "free_completed", "segment_free")


class Event(NamedTuple):
    """A block that was allocated, or with a negative size released."""

    time_us: int
    address: int
    num_bytes: int
    frames: Sequence[dict[str, Any]]


class LiveBlock(NamedTuple):
    """A block that is there in the end."""

    address: int
    num_bytes: int
    frames: Sequence[dict[str, Any]]


def frame(path: str, line: int, function: str) -> dict[str, Any]:
    """Return a line of Python as the viewer has it."""
    return {"filename": path, "line": line, "name": function}


def snapshot(blocks: Iterable[LiveBlock], events: Iterable[Event]) -> dict[str, Any]:
    """Return the snapshot: what is there in the end, and the events that led to it, in order."""
    return {
        "segments": [_segment(block) for block in sorted(blocks)],
        "device_traces": [[each for event in events for each in _traced(event)]],
        "allocator_settings": {},
        "external_annotations": [],
    }


def snapshot_path(folder: Path, pid: int) -> Path:
    """Return where a process leaves its snapshot."""
    return folder / f"memory-snapshot-{pid}.pickle"


def save(path: Path, value: dict[str, Any]) -> None:
    """Write a snapshot."""
    with path.open("wb") as file:
        pickle.dump(value, file)


def _segment(block: LiveBlock) -> dict[str, Any]:
    return {
        "device": 0,
        "address": block.address,
        "total_size": block.num_bytes,
        "allocated_size": block.num_bytes,
        "active_size": block.num_bytes,
        "requested_size": block.num_bytes,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": list(block.frames),
        "blocks": [
            {
                "address": block.address,
                "size": block.num_bytes,
                "requested_size": block.num_bytes,
                "state": "active_allocated",
                "frames": list(block.frames),
            }
        ],
    }


def _traced(event: Event) -> Iterable[dict[str, Any]]:
    for action in _ALLOCATED if event.num_bytes > 0 else _RELEASED:
        yield {
            "action": action,
            "addr": event.address,
            "size": abs(event.num_bytes),
            "stream": 0,
            "time_us": event.time_us,
            "compile_context": "N/A",
            "frames": list(event.frames),
        }
