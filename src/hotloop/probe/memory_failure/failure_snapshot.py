"""The memory at the end, and how it came there, as a file for torch's viewer (pytorch.org/memory_viz)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from hotloop.probe.device.memory_history import MemoryHistory, memory_history
from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.record.viewer_snapshot import Event, LiveBlock, frame, save, snapshot, snapshot_path

ALIGNMENT = 512


class FailureSnapshot:
    """Of a CUDA device torch's own history, from the moment at which it is in use; of the host what was followed.

    Args:
        storages: what is followed.
    """

    def __init__(self, storages: LiveStorages) -> None:
        self._storages = storages
        self._history: MemoryHistory | None = None
        self._in_use = torch.cuda.is_initialized

    def look(self) -> None:
        """Start the device's history once a device is in use."""
        if self._history is None and self._in_use():
            self._history = memory_history()
            if self._history is not None:
                self._history.start()

    def write(self, folder: Path, device: str) -> None:
        """Write the snapshot of a device, or of the host."""
        path = snapshot_path(folder, os.getpid())
        if device == "cpu":
            save(path, of_storages(self._storages, device))
        elif self._history is not None:
            self._history.dump(path)


def of_storages(storages: LiveStorages, device: str) -> dict[str, Any]:
    """Return the snapshot of the storages that are alive, and of the newest events."""
    live = [record for record in storages.live.values() if record.device == device]
    events = [event for event in storages.events if event.device == device]
    sizes = {event.number: abs(event.num_bytes) for event in events}
    sizes.update({record.number: record.num_bytes for record in live})
    addresses, address = {}, ALIGNMENT
    for number, size in sorted(sizes.items()):
        addresses[number] = address
        address += -(-size // ALIGNMENT) * ALIGNMENT
    lines = [
        [frame(*line) for line in reversed(stack)] or [frame("torch", 0, part)]
        for stack, part, _ in storages.stacks.stacks()
    ]
    return snapshot(
        (LiveBlock(addresses[each.number], each.num_bytes, lines[each.stack]) for each in live),
        (
            Event(each.time_ns // 1000, addresses[each.number], each.num_bytes, lines[each.stack])
            for each in events
        ),
    )
