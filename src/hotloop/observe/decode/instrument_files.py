"""Read what the instruments wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from hotloop.model.observation import Coverage


class DeepFile(msgspec.Struct, frozen=True, kw_only=True):
    """One instrument's result in one process."""

    name: str
    pid: int
    rank: int | None
    steps: int
    """Whole steps in the window."""
    begin_ns: int
    """On the monotonic clock."""
    end_ns: int
    value: Any
    """None: see `error`."""
    error: str | None = None

    @property
    def window_s(self) -> float:
        """How long it looked."""
        return (self.end_ns - self.begin_ns) * 1e-9


def read_deep(folder: Path, name: str) -> list[DeepFile]:
    """Return an instrument's results, one a process."""
    return [
        # Not msgspec's decoder: results may hold NaN and names that are not UTF-8.
        msgspec.convert(json.loads(path.read_text("ascii")), DeepFile)
        for path in sorted(folder.glob(f"deep-{name}-*.json"))
    ]


def usable(folder: Path, name: str, lead: int | None) -> DeepFile | Coverage:
    """Return the leading process's result, or why there is none."""
    mine = [file for file in read_deep(folder, name) if file.pid == lead]
    if not mine:
        return Coverage(name, "the program ended before it could be looked at closer")
    file = mine[0]
    if file.error is not None or file.value is None:
        return Coverage(name, file.error or "the instrument saw nothing")
    if file.steps == 0:
        return Coverage(name, "the program ended before a whole step was looked at")
    return file
