"""Read what the instruments wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


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
    cut: bool = False
    """The window was ended before the instrument had seen enough."""

    @property
    def window_s(self) -> float:
        """How long it looked."""
        return (self.end_ns - self.begin_ns) * 1e-9


def read_deep(folder: Path, name: str) -> list[DeepFile]:
    """Return an instrument's results, one a process."""
    decoder = msgspec.msgpack.Decoder(DeepFile)
    return [decoder.decode(path.read_bytes()) for path in sorted(folder.glob(f"deep-{name}-*.msgpack"))]


def result_of(folder: Path, name: str, lead: int | None) -> DeepFile | None:
    """Return the leading process's result; None: it wrote none."""
    return next((file for file in read_deep(folder, name) if file.pid == lead), None)


def has_seen(file: DeepFile) -> bool:
    """Whether an instrument saw at least one whole step."""
    return file.error is None and file.value is not None and file.steps > 0
