"""Which module's forward runs at a moment: the innermost one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any


class ModuleAt:
    """The calls of a window.

    Args:
        calls: number of the module, begin, end and depth of each.
        modules: by number.
    """

    def __init__(self, calls: Sequence[Sequence[int]], modules: Sequence[Mapping[str, Any]]) -> None:
        self._modules = modules
        self._by_depth: dict[int, tuple[list[int], list[Sequence[int]]]] = {}
        for call in sorted(calls, key=lambda call: call[1]):
            begins, rows = self._by_depth.setdefault(call[3], ([], []))
            begins.append(call[1])
            rows.append(call)

    def path(self, time_ns: int) -> str:
        """Return its path; empty: none runs."""
        for depth in sorted(self._by_depth, reverse=True):
            begins, rows = self._by_depth[depth]
            place = bisect_right(begins, time_ns) - 1
            if place >= 0 and rows[place][2] >= time_ns:
                number = rows[place][0]
                return str(self._modules[number]["path"]) if 0 <= number < len(self._modules) else ""
        return ""
