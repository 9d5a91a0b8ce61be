"""An independent count of what tensors take: storages that are alive, by weak references."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class LiveBytes(TorchDispatchMode):  # type: ignore[misc]
    """Counts the storages that operations make, and keeps the most that were alive at once."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = self._now = 0
        self._known: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation, and count what it made."""
        out = func(*args, **(kwargs or {}))
        for each in out if isinstance(out, tuple | list) else (out,):
            if isinstance(each, torch.Tensor):
                self._add(each.untyped_storage())
        return out

    def _add(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return

        def released(_: Any) -> None:
            del self._known[key]
            self._now -= size

        self._known[key] = weakref.ref(storage, released)
        self._now += size
        self.peak = max(self.peak, self._now)
