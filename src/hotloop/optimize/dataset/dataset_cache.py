"""The activation and knob of dataset_in_memory and cached_preprocessing: batches come from kept samples."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hotloop.optimize.dataset.keep import KeptDataset
from hotloop.optimize.dataset.memory import give_large_blocks_back
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.probe.activation.knob import Knob
from hotloop.probe.record.generators import GlobalGenerators

_IN_PROCESS = {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False, "timeout": 0}
"""What torch demands of a loader without workers."""
Keep = Callable[..., Any]
"""Given a loader and the share of the free memory, and whether it reads."""


class DatasetCache(Knob):
    """Keeps the samples of the data sets that training iterates, before their first epoch.

    Args:
        max_share: of the free memory that the samples of one data set may take.
        in_process: loaders with workers make their batches in the training process once the samples are kept.
        on: from the start; a knob is switched on later.
        keep: reads and keeps the data set of a loader.
    """

    reads_all: ClassVar[bool] = True
    """Beginning with a data set reads every sample of it: not worth it for a single epoch."""

    def __init__(
        self, max_share: float, in_process: bool, *, on: bool = True, keep: Keep = KeptDataset
    ) -> None:
        self._max_share = max_share
        self._in_process = in_process
        self._keep = keep
        self._kept: dict[int, Any] = {}
        self._refused: dict[int, tuple[Any, str]] = {}
        self._epochs: dict[int, int] = {}
        self._made_anew = False
        """Whether a loader was gone after one epoch of its data set."""
        self._loaders: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._workers: dict[int, int] = {}
        """Of the loaders seen last, whether they are still there or not."""
        self._keepable: set[int] = set()
        """Data sets of loaders with workers, of which nothing is known that forbids it."""
        self._on = on

    def on_torch(self) -> None:
        """Stand where loaders begin an epoch and where they fetch."""
        from torch.utils.data import DataLoader
        from torch.utils.data._utils.fetch import _MapDatasetFetcher
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self._patch_iterator(DataLoader)
        self._patch_reset(_BaseDataLoaderIter)
        self._patch_fetch(_MapDatasetFetcher)

    def _patch_iterator(self, cls: Any) -> None:
        original = cls._get_iterator

        @functools.wraps(original)
        def get_iterator(loader: Any) -> Any:
            self._begin(loader)
            if not (self._in_process and loader.num_workers and self._stands_in(loader.dataset)):
                return _with_its_loader(original(loader), loader)
            given = {name: loader.__dict__[name] for name in _IN_PROCESS}
            loader.__dict__.update(_IN_PROCESS)
            try:
                return original(loader)
            finally:
                loader.__dict__.update(given)

        cls._get_iterator = get_iterator

    def _patch_reset(self, cls: Any) -> None:
        """An iterator that is kept from epoch to epoch (persistent workers) begins the next one here."""
        original = cls._reset

        @functools.wraps(original)
        def reset(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
            self._begin(loader)
            original(iterator, loader, *args, **kwargs)

        cls._reset = reset

    def _patch_fetch(self, cls: Any) -> None:
        from torch.utils.data import get_worker_info

        original = cls.fetch

        @functools.wraps(original)
        def fetch(fetcher: Any, index: Any) -> Any:
            kept = self._stands_in(fetcher.dataset)
            if kept is None or not fetcher.auto_collation or not kept.covers(fetcher.collate_fn, index):
                return original(fetcher, index)
            if get_worker_info() is not None:
                give_large_blocks_back()
            return kept.batch(index, fetcher.collate_fn)

        cls.fetch = fetch

    def _stands_in(self, dataset: Any) -> Any:
        """Return what is kept of a data set; None: it is read.

        An evaluation reads it, which began without the check that an epoch begins with: it may be in another mode.
        """
        import torch

        return self._kept.get(id(dataset)) if self._on and torch.is_grad_enabled() else None

    def _begin(self, loader: Any) -> None:
        """Keep the samples before the first epoch, and check them before each further one."""
        import torch

        if not torch.is_grad_enabled() or not _is_map_style(loader):
            return  # an evaluation, or nothing that has indices
        key = id(loader.dataset)
        self._loaders[key], self._workers[key] = loader, loader.num_workers
        if not self._on or key in self._refused:
            return
        try:
            if key in self._kept:
                self._kept[key].check_again()
            else:
                self._keep_first(key, loader)
            self._epochs[key] = self._epochs.get(key, 0) + 1
        except CannotKeep as refusal:
            self._refuse(loader.dataset, str(refusal))
        except Exception as error:  # the user's data set may raise what it likes; it is read as before then
            self._refuse(loader.dataset, f"reading it ahead failed: {error!r}")

    def _keep_first(self, key: int, loader: Any) -> None:
        """Keep the samples of another data set.

        Raises:
            CannotKeep: the program makes data sets as it goes.
        """
        self._drop_unused()
        if self.reads_all and self._made_anew:
            raise CannotKeep("the program makes a loader over other data for each epoch")
        self._kept[key] = self._read_ahead(loader)

    def _drop_unused(self) -> None:
        """Let go of the samples whose loader is gone: with a data set an epoch they would fill the memory."""
        for key in [key for key in self._kept if key not in self._loaders]:
            del self._kept[key]
            self._made_anew = self._made_anew or self._epochs.pop(key) == 1

    def _look(self, loader: Any) -> None:
        """See whether the data set of a loader whose workers run already could be kept."""
        key = id(loader.dataset)
        if key in self._kept or key in self._refused:
            return
        try:
            self._read_ahead(loader, reads=False)
        except CannotKeep as refusal:
            self._refuse(loader.dataset, str(refusal))
        except Exception as error:
            self._refuse(loader.dataset, f"reading it ahead failed: {error!r}")
        else:
            self._keepable.add(key)

    def _read_ahead(self, loader: Any, *, reads: bool = True) -> Any:
        before = GlobalGenerators()
        try:
            return self._keep(loader, self._max_share, reads=reads)
        finally:
            before.restore()

    def _refuse(self, dataset: Any, reason: str) -> None:
        self._kept.pop(id(dataset), None)
        self._refused[id(dataset)] = (dataset, reason)  # held, so that its id stays its own

    def switch(self, on: bool) -> None:
        """Take batches from kept samples, or from the data set again; workers that run already cannot be switched."""
        self._on = on
        for loader in list(self._loaders.values()) if on else ():
            (self._look if loader.num_workers else self._begin)(loader)

    @property
    def from_start(self) -> bool:
        """Whether workers would have the samples if they were kept before they start."""
        return bool(self._keepable) and not self._kept

    def effect(self) -> tuple[bool, str]:
        """Return whether samples are kept and used."""
        used = [kept for kept in self._kept.values() if self.acts(kept)]
        if used:
            return True, self.said(used)
        if self._refused:
            dataset, reason = next(iter(self._refused.values()))
            return False, f"the data set {type(dataset).__name__} is not kept: {reason}"
        if any(self._workers.values()):
            return False, "loader workers make the batches, in processes that ran before it was switched on"
        return False, "no training loader with an indexable data set was seen"

    def acts(self, kept: Any) -> bool:
        """Whether batches come from what is kept; those of workers are not seen here."""
        workers = self._workers.get(id(kept.dataset), 0)
        return bool(kept.num_batches) or (workers > 0 and not self._in_process)

    def said(self, used: Sequence[Any]) -> str:
        """Return what is kept."""
        size, seconds = sum(kept.num_bytes for kept in used), sum(kept.fill_s for kept in used)
        return f"{len(used)} data set(s) in memory, {size / 2**20:.3g} MiB, read in {seconds:.1f} s"


def _with_its_loader(iterator: Any, loader: Any) -> Any:
    """Return an iterator that keeps its loader alive, unless the loader keeps it: `iter(DataLoader(data))`."""
    if not loader.persistent_workers:
        iterator.__dict__["_hotloop_loader"] = loader
    return iterator


def _is_map_style(loader: Any) -> bool:
    from torch.utils.data import IterableDataset

    return loader.batch_sampler is not None and not isinstance(loader.dataset, IterableDataset)
