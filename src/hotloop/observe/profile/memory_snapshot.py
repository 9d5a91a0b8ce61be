"""The memory of a few steps as a file for torch's viewer (pytorch.org/memory_viz)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.observe.decode.instrument_files import result_of
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.memory_blocks import FOREVER, Block, blocks_of
from hotloop.observe.profile.memory_lines import MemoryLines
from hotloop.observe.profile.memory_phases import MemoryPhases
from hotloop.observe.profile.profile import Seen
from hotloop.probe.record.viewer_snapshot import Event, LiveBlock, frame, save, snapshot, snapshot_path

NAME = "memory"
ALIGNMENT = 512
"""Of blocks, as the CUDA allocator has it."""
_BEFORE = "before the window"


def keep_snapshot(folder: Path, lead: Timeline | None, seen: Seen, target: Path | None) -> None:
    """Write the leading process's snapshot, where one is wanted and memory was looked at in this run.

    Args:
        folder: of the records.
        lead: the leading process; None: none trained.
        seen: by the instruments.
        target: where it goes; None: nowhere.
    """
    if target is None or lead is None or NAME not in seen.values:
        return
    of_torch = snapshot_path(folder, lead.pid)
    file = result_of(folder, NAME, lead.pid)
    if of_torch.exists():
        shutil.copyfile(of_torch, target)
    elif file is not None and file.value and file.value["sizes"]:
        save(target, snapshot_of(file.value, lead))


def snapshot_of(value: Mapping[str, Any], lead: Timeline) -> dict[str, Any]:
    """Return the snapshot of what the instrument of memory saw, each block with the line that made it."""
    ends: list[int] = value["ends_ns"]
    phases = MemoryPhases(lead.spans, ends[0], ends[-1])
    lines = MemoryLines(value, phases)
    live: list[LiveBlock] = []
    events: list[Event] = []
    address = ALIGNMENT
    for block in blocks_of(value, phases):
        frames = _frames(block, lines)
        begin_us = max(ends[0], block.begin_ns) // 1000
        events.append(Event(begin_us, address, block.num_bytes, frames))
        if block.end_ns == FOREVER:
            live.append(LiveBlock(address, block.num_bytes, frames))
        else:
            events.append(Event(block.end_ns // 1000, address, -block.num_bytes, frames))
        # No two blocks of a snapshot have the same address, whatever malloc did.
        address += -(-block.num_bytes // ALIGNMENT) * ALIGNMENT
    return snapshot(live, sorted(events, key=lambda event: event.time_us))


def _frames(block: Block, lines: MemoryLines) -> list[dict[str, Any]]:
    """Return the lines of a block, the innermost first; its class stands below them."""
    whose = frame(block.name, 0, _BEFORE if not block.begin_ns else block.name)
    maker = lines.maker(block.begin_ns) if block.begin_ns else None
    if maker is None:
        return [whose]
    return [frame(maker.path, maker.line, f"{maker.operator} in {maker.function}"), whose]
