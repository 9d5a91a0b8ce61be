"""From allocations and releases to blocks of memory: each with its beginning, its end, and what it is for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.observe.profile.memory_phases import BACKWARD, DATA, FORWARD, OTHER, MemoryPhases
from hotloop.observe.profile.unpacked import unpacked

BASE_CLASSES = ("parameters", "gradients", "optimizer_state", "buffers", "other")
"""By the numbers of `probe/instruments/storage_classes.py`."""
FOREVER = 1 << 62


@dataclass(slots=True)
class Block:
    """A piece of memory that was allocated at once.

    Attributes:
        num_bytes: its size.
        begin_ns: when it was allocated; 0: before the window.
        end_ns: when it was released; `FOREVER`: it was not.
        name: its class.
        row: what the walk over the program's tensors knew of it; None: it came later.
    """

    num_bytes: int
    begin_ns: int
    end_ns: int
    name: str
    row: Mapping[str, Any] | None = None

    def alive(self, time_ns: int) -> bool:
        """Whether it is there at a moment."""
        return self.begin_ns <= time_ns < self.end_ns


def blocks_of(value: Mapping[str, Any], phases: MemoryPhases) -> list[Block]:
    """Return the blocks of a window, the older ones first; what the marks name has its class."""
    by_address: dict[int, list[Block]] = defaultdict(list)
    blocks: list[Block] = []
    for row in value.get("base") or ():
        if row["device"] == value["device"]:
            known = Block(row["bytes"], 0, FOREVER, BASE_CLASSES[row["class"]], row)
            by_address[row["address"]].append(known)
            blocks.append(known)
    if value["base_bytes"] is None:
        for time, address in value.get("releases") or ():
            _release(by_address[address], blocks, time, 0)
    events = zip(*(unpacked(value[name]) for name in ("times_ns", "addresses", "sizes")), strict=True)
    for time, address, size in events:
        if size > 0:
            made = Block(size, time, FOREVER, "")
            by_address[address].append(made)
            blocks.append(made)
        else:
            _release(by_address[address], blocks, time, -size)
    _name_marked(value.get("marks") or (), by_address)
    for each in blocks:
        each.name = each.name or _name(each, phases)
    return blocks


def _release(there: list[Block], blocks: list[Block], time_ns: int, size: int) -> None:
    last = there[-1] if there else None
    if last is not None and last.end_ns == FOREVER:
        last.end_ns = time_ns
    elif size:
        unknown = Block(size, 0, time_ns, "unattributed")
        there.append(unknown)
        blocks.append(unknown)


def _name_marked(marks: Any, by_address: Mapping[int, list[Block]]) -> None:
    for time, number, addresses in marks:
        for address in addresses:
            for block in by_address.get(address, ()):
                if block.alive(time) and block.name in ("", "other"):
                    block.name = BASE_CLASSES[number]


def _name(block: Block, phases: MemoryPhases) -> str:
    """Return the class of a block by when it was made, and by what it outlives."""
    phase = phases.at(block.begin_ns)
    backward, forward = phases.next_backward(block.begin_ns), phases.next_forward(block.begin_ns)
    outlives = backward is not None and block.end_ns > backward
    if phase == DATA:
        return "inputs"
    if phase == FORWARD or (phase == OTHER and not phases.forwards):
        return "activations" if outlives else "temporaries"
    if phase == BACKWARD:
        return "temporaries"
    if phase == OTHER and forward is not None and block.end_ns > forward:
        return "inputs"
    return "temporaries"
