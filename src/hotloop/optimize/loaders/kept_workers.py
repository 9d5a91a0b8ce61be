"""Workers that an optimization lets live on: they are started anew where the program has changed their data set."""

from __future__ import annotations

import functools
from typing import Any

from hotloop.optimize.loaders.dataset_state import changed, state_of

_LASTING = "_hotloop_lasting"


class LastingDataset:
    """A data set of which workers have a copy.

    Args:
        dataset: as it was when they were started.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._state = state_of(dataset)

    def changed(self) -> str:
        """Return what of it is different now (`self.p`); empty: nothing was seen to be."""
        names = changed(self._state, state_of(self._dataset))
        return names[0] if names else ""


class LastingWorkers:
    """Watches the data sets of loaders whose workers live on by our doing.

    Attributes:
        reason: why workers should not live on; empty: none was seen.
    """

    def __init__(self) -> None:
        self._ours: set[int] = set()
        self.reason = ""

    def install(self) -> None:
        """Stand where workers are started, and where those that live on begin their next epoch."""
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

        original = _MultiProcessingDataLoaderIter._reset

        @functools.wraps(original)
        def reset(iterator: Any, loader: Any, first_iter: bool = False) -> None:
            if first_iter and id(loader.dataset) in self._ours:
                iterator.__dict__[_LASTING] = LastingDataset(loader.dataset)
            known = iterator.__dict__.get(_LASTING)
            name = known.changed() if known is not None else ""
            if not name:
                original(iterator, loader, first_iter)
                return
            self.reason = f"{name} of the data set changes between epochs"
            iterator._shutdown_workers()
            loader._iterator = loader._get_iterator()

        _MultiProcessingDataLoaderIter._reset = reset

    def keep(self, keywords: dict[str, Any]) -> bool:
        """Let the workers of a loader live on, unless its data set is told the epoch; return whether they do."""
        dataset = keywords.get("dataset")
        if keywords.get("persistent_workers"):
            return True  # by the program's wish, or ours of before
        if hasattr(dataset, "set_epoch"):
            self.reason = "the data set is told the epoch"
            return False
        self._ours.add(id(dataset))
        keywords["persistent_workers"] = True
        return True
