"""See with which settings the loaders are really iterated: the proof that changed keywords arrived."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SeenIterator:
    """One iterator over a DataLoader.

    Attributes:
        num_workers: worker processes that were started.
        prefetch_factor: batches that each worker prepares ahead; None without workers.
        persistent_workers: the workers outlive the epoch.
        pin_memory: batches are copied to page-locked memory.
    """

    num_workers: int
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory: bool


@dataclass
class IteratorWatch:
    """Collects the settings of iterators as they are made; each distinct one once."""

    seen: list[SeenIterator] = field(default_factory=list)

    def install(self) -> None:
        """Look at every iterator at the end of its construction."""
        from torch.utils.data import dataloader

        for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            self._watch(getattr(dataloader, name))

    def _watch(self, cls: Any) -> None:
        original = cls.__init__

        @functools.wraps(original)
        def init(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            original(iterator, loader, *args, **kwargs)
            self._note(iterator, loader)

        cls.__init__ = init

    def _note(self, iterator: Any, loader: Any) -> None:
        workers = iterator.__dict__.get("_workers", ())
        seen = SeenIterator(
            num_workers=len(workers),
            prefetch_factor=loader.prefetch_factor if workers else None,
            persistent_workers=bool(loader.persistent_workers),
            pin_memory=bool(iterator.__dict__.get("_pin_memory", False)),
        )
        if seen not in self.seen:
            self.seen.append(seen)
