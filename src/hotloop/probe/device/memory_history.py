"""The history of torch's CUDA allocator, and its snapshot for torch's viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MAX_ENTRIES = 100_000
"""Events that are kept, the newest: a snapshot of so many with their lines takes some tens of megabytes."""


class MemoryHistory:
    """Records the allocator's events, unless the program does so itself.

    Args:
        memory: `torch.cuda.memory`.
        recorded: whether it records already.
    """

    def __init__(self, memory: Any, *, recorded: bool) -> None:
        self._memory = memory
        self._recorded = recorded

    def start(self) -> None:
        """Record from now on, each event with its lines of Python."""
        if not self._recorded:
            self._memory._record_memory_history(stacks="python", max_entries=MAX_ENTRIES)

    def dump(self, path: Path) -> None:
        """Write the snapshot."""
        self._memory._dump_snapshot(str(path))

    def stop(self) -> None:
        """Record no more."""
        if not self._recorded:
            self._memory._record_memory_history(enabled=None)


def memory_history() -> MemoryHistory | None:
    """Return the history of the devices in use; None: there is none in use, or its allocator keeps no history."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if enabled is None:
        return None
    return MemoryHistory(torch.cuda.memory, recorded=bool(enabled()))
