"""Which line of Python a block of memory was made by: the line of the operation that ran when it was allocated.

An operation of a backward pass has the line whose forward made its graph node.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NamedTuple

from hotloop.observe.profile.memory_phases import BACKWARD, MemoryPhases
from hotloop.observe.profile.unpacked import unpacked


class Maker(NamedTuple):
    """The operation that made a block."""

    path: str
    line: int
    function: str
    operator: str
    shape: tuple[int, ...]
    dtype: str
    in_backward: bool
    forward_ns: int
    """When the operation ran; of one in a backward, when its forward did."""


class MemoryLines:
    """The operations of a window, in the order of their beginnings.

    Args:
        value: what the instrument saw.
        phases: of the window.
    """

    def __init__(self, value: Mapping[str, Any], phases: MemoryPhases) -> None:
        seen = value.get("operations") or {}
        columns = ("begins_ns", "ends_ns", "made", "nodes", "stacks", "names", "shapes")
        self._rows = sorted(zip(*(unpacked(seen[name]) for name in columns), strict=True)) if seen else []
        self._begins = [row[0] for row in self._rows]
        self._stacks = seen.get("stack_lines") or []
        self._names = seen.get("name_words") or []
        self._shapes = seen.get("shape_words") or []
        self._phases = phases
        self._of_node = self._forwards()

    def maker(self, time_ns: int) -> Maker | None:
        """Return the operation that ran at a moment; None: none did."""
        place = bisect_right(self._begins, time_ns) - 1
        if place < 0 or self._rows[place][1] < time_ns:
            return None
        row = self._rows[place]
        in_backward = self._phases.at(row[0]) == BACKWARD
        forward = self._of_node.get(row[3]) if in_backward else None
        line = self._line((forward or row)[4])
        if line is None:
            return None
        shape = self._shapes[row[6]]
        return Maker(
            *line,
            operator=self._names[row[5]],
            shape=tuple(shape[0]) if shape else (),
            dtype=shape[1] if shape else "",
            in_backward=in_backward,
            forward_ns=(forward or row)[0],
        )

    def _line(self, stack: int) -> tuple[str, int, str] | None:
        lines = self._stacks[stack]
        if not lines:
            return None
        path, line, function, _ = lines[-1]
        return path, line, function

    def _forwards(self) -> dict[int, tuple[int, ...]]:
        """Return the operation that made each graph node: the counter of nodes had gone on when it ran."""
        found: dict[int, tuple[int, ...]] = {}
        last = None
        for row in self._rows:
            made = row[2]
            if self._phases.at(row[0]) != BACKWARD and last is not None and made > last:
                found[made - 1] = row
            last = made
        return found
