"""The activation and knob of device_prefetch: the next batch is made, and moved, while this one computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hotloop.optimize.catalogue.input.device_prefetch.batch_ahead import Ahead, Ended, Maker
from hotloop.optimize.catalogue.input.device_prefetch.hazards import PrefetchHazards
from hotloop.optimize.catalogue.input.device_prefetch.moved_ahead import MovedAhead
from hotloop.probe.activation.knob import Knob

_AHEAD, _BEGUN = "_hotloop_ahead", "_hotloop_begun"
WATCHED = 3
"""Batches that are made as before, and watched, before any is made ahead."""
AGAIN = 50
"""Batches after which one is watched again."""


class NextBatch(Knob):
    """Stands where a loader's iterators make their batches.

    Args:
        on: from the start; a knob is switched on later.
    """

    def __init__(self, *, on: bool = True) -> None:
        self._on = on
        self._maker = Maker()
        self._moved: MovedAhead | None = None
        self._hazards: dict[tuple[int, type], PrefetchHazards] = {}
        self._since_watched = 0
        self._reason = "no training loader was seen"
        self._failed = ""
        self.num_ahead = 0
        """Batches that were there, or under way, when they were asked for."""

    def on_torch(self) -> None:
        """Stand between the iterators and their batches."""
        import torch
        from torch.utils.data import DataLoader, dataloader

        for name in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"):
            self._patch(getattr(dataloader, name))
        self._patch_iterator(DataLoader)
        self._patch_reset(dataloader._MultiProcessingDataLoaderIter)
        # Asking for a device would begin CUDA: before the program chooses its devices, and before it forks.
        if torch.version.cuda or torch.version.hip:
            self._moved = MovedAhead()
            self._moved.install()

    def _patch(self, cls: Any) -> None:
        original = cls._next_data

        @functools.wraps(original)
        def next_data(iterator: Any) -> Any:
            return self._next(iterator, original)

        cls._next_data = next_data

    def _patch_iterator(self, cls: Any) -> None:
        """Nothing is under way while an iterator is made: its workers are forked, its seed is drawn."""
        original = cls._get_iterator

        @functools.wraps(original)
        def get_iterator(loader: Any) -> Any:
            self._maker.wait()
            return original(loader)

        cls._get_iterator = get_iterator

    def _patch_reset(self, cls: Any) -> None:
        """Workers that live on begin the next epoch here: a batch of the one that was left is nobody's."""
        original = cls._reset

        @functools.wraps(original)
        def reset(iterator: Any, *args: Any, **kwargs: Any) -> None:
            self._maker.wait()
            iterator.__dict__.pop(_AHEAD, None)
            iterator.__dict__[_BEGUN] = False
            original(iterator, *args, **kwargs)

        cls._reset = reset

    def _next(self, iterator: Any, original: Callable[[Any], Any]) -> Any:
        import torch

        ahead = iterator.__dict__.pop(_AHEAD, None)
        if isinstance(ahead, Ended):
            raise StopIteration
        if ahead is not None:
            batch = self._taken(ahead, iterator)
        elif not torch.is_grad_enabled():
            return original(iterator)  # an evaluation
        else:
            batch = self._watched(iterator, original)
        if self._on and self._may(iterator):
            iterator.__dict__[_AHEAD] = self._begin(iterator, original)
        return batch

    def _taken(self, ahead: Ahead, iterator: Any) -> Any:
        """Return a batch that was made ahead; where that fails none is any more."""
        try:
            batch = ahead.take()
        finally:
            if ahead.failed:
                self._failed = self._hazards_of(iterator).reason = ahead.failed
        self.num_ahead += 1
        return batch

    def _watched(self, iterator: Any, original: Callable[[Any], Any]) -> Any:
        """Make a batch as before, and see what making it does besides; an epoch's first draws the sampler's seed."""
        self._since_watched = 0
        if iterator.__dict__.setdefault(_BEGUN, False):
            return self._hazards_of(iterator).watch(lambda: original(iterator))
        iterator.__dict__[_BEGUN] = True
        return original(iterator)

    def _hazards_of(self, iterator: Any) -> PrefetchHazards:
        key = id(iterator._dataset), type(iterator)
        if key not in self._hazards:
            self._hazards[key] = PrefetchHazards(iterator, moves=self._moved is not None)
        return self._hazards[key]

    def _may(self, iterator: Any) -> bool:
        hazards = self._hazards_of(iterator)
        self._reason = hazards.reason or "too few batches were made to know what making them does"
        self._since_watched += 1
        return not hazards.reason and hazards.num_watched >= WATCHED and self._since_watched < AGAIN

    def _begin(self, iterator: Any, original: Callable[[Any], Any]) -> Ahead | Ended:
        """Ask for the next batch; its indices are drawn here, in the program's own thread."""
        finish = self._moved.move if self._moved is not None else None
        if not hasattr(iterator, "_dataset_fetcher"):
            return self._maker.begin(lambda: original(iterator), finish)
        try:
            index = iterator._next_index()
        except StopIteration:
            return Ended()

        def make() -> Any:
            from torch.utils.data._utils.pin_memory import pin_memory

            batch = iterator._dataset_fetcher.fetch(index)
            return pin_memory(batch, iterator._pin_memory_device) if iterator._pin_memory else batch

        return self._maker.begin(make, finish, dataset=iterator._dataset)

    def switch(self, on: bool) -> None:
        """Make batches ahead, or as before; one that is under way is still handed out."""
        self._on = on

    def effect(self) -> tuple[bool, str]:
        """Return whether batches were made ahead, of all that were asked for: a patch could not tell them apart."""
        alone = self._failed or next((each.reason for each in self._hazards.values() if each.reason), "")
        if alone or not self.num_ahead:
            return False, alone or self._reason
        moved = f", {self._moved.num_used} tensors moved ahead" if self._moved is not None else ""
        return True, f"{self.num_ahead} batches were made while the one before computed{moved}"
