"""A second loader over the same data set, with other workers, beside the program's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from hotloop.optimize.loaders.kept_workers import LastingDataset
from hotloop.optimize.loaders.worker_hazards import reason_against

DEFAULT_PREFETCH = 2
"""torch's own prefetch_factor."""


def reason_against_workers(loader: Any, num_workers: int, prefetch: int = DEFAULT_PREFETCH) -> str:
    """Return why a loader must not be given so many workers; empty: it may."""
    keywords = {
        "dataset": loader.dataset,
        "num_workers": loader.num_workers,
        "batch_size": loader.batch_size,
        "worker_init_fn": loader.worker_init_fn,
    }
    return reason_against(keywords, num_workers, prefetch)


class ShadowLoader:
    """Yields the batches of a loader as if it had other workers, epoch after epoch.

    Args:
        loader: the program's.
        num_workers: 0: batches are made where they are asked for.
        prefetch_factor: None: the program's, else torch's default.
        persistent: the workers live on from epoch to epoch.
        fetch: torch's own `__next__` of an iterator.
    """

    def __init__(
        self,
        loader: Any,
        num_workers: int,
        prefetch_factor: int | None,
        fetch: Callable[[Any], Any],
        *,
        persistent: bool = True,
    ) -> None:
        self._loader = copy.copy(loader)
        self._fetch = fetch
        self._iterator: Any = None
        self._lasting: LastingDataset | None = None
        self._epoch: object = None
        prefetch = prefetch_factor or loader.prefetch_factor or DEFAULT_PREFETCH
        self._loader.__dict__.update(
            num_workers=num_workers,
            prefetch_factor=prefetch if num_workers else None,
            persistent_workers=persistent and num_workers > 0,
            _iterator=None,
        )
        if not num_workers:
            self._loader.__dict__.update(timeout=0, _DataLoader__multiprocessing_context=None)

    def next(self, epoch: object = None) -> Any:
        """Return the next batch; a new epoch begins where the program's does."""
        if self._iterator is None or epoch is not self._epoch:
            self._begin(epoch)
        try:
            return self._fetch(self._iterator)
        except StopIteration:
            self._begin(epoch)
            return self._fetch(self._iterator)

    def _begin(self, epoch: object) -> None:
        from torch.utils.data import DataLoader

        own: Any = DataLoader.__iter__
        self._epoch = epoch
        if self._lasting is not None and self._lasting.changed():
            self.close()  # workers that live on have not heard of it
        if self._iterator is None:
            self._lasting = LastingDataset(self._loader.dataset) if self._loader.persistent_workers else None
        self._iterator = getattr(own, "__wrapped__", own)(self._loader)

    @property
    def num_processes(self) -> int:
        """The worker processes that are there."""
        return len(self._iterator.__dict__.get("_workers", ())) if self._iterator is not None else 0

    def close(self) -> None:
        """End the workers."""
        shut_down = getattr(self._iterator, "_shutdown_workers", None)
        if shut_down is not None:
            shut_down()
        self._iterator = self._loader.__dict__["_iterator"] = None
