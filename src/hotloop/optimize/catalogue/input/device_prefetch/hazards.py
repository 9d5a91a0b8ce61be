"""Why a loader's batches are not made ahead: what making one does besides, or reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hotloop.model.quantities import listed
from hotloop.optimize.loaders.dataset_state import changed, state_of
from hotloop.probe.record.generators import GlobalGenerators


class PrefetchHazards:
    """What is known of one data set.

    Args:
        iterator: of a loader over it.
        moves: batches are copied to a device ahead, which is worth it beside workers, too.

    Attributes:
        reason: why its batches are made as before; empty: they may be made ahead.
        num_watched: batches that were made as before and looked at.
    """

    def __init__(self, iterator: Any, *, moves: bool) -> None:
        self._dataset = iterator._dataset
        self.num_watched = 0
        self.reason = _reason(iterator, moves=moves)

    def watch(self, make: Callable[[], Any]) -> Any:
        """Make a batch; remember what making it changed."""
        if self.reason:
            return make()
        self.num_watched += 1
        before, state = GlobalGenerators(), state_of(self._dataset)
        batch = make()
        drawn, names = before.drawn(), changed(state, state_of(self._dataset))
        if drawn:
            # A program that leaves an epoch early would have drawn for a batch that it never sees.
            self.reason = f"making a batch draws random numbers from {listed(drawn)}"
        elif names:
            self.reason = f"making a batch changes {names[0]} of the data set"
        return batch


def _reason(iterator: Any, *, moves: bool) -> str:
    import torch
    from torch.utils.data.dataloader import _DatasetKind

    if iterator._dataset_kind == _DatasetKind.Iterable:
        return "an IterableDataset may do more than yield samples"
    if not hasattr(iterator, "_dataset_fetcher") and not moves:
        return "its workers make batches ahead already, and there is no device to move them to"
    if torch.get_default_device().type != "cpu":
        return "the default device is set, which a thread would not know"
    return _sampler_reason(iterator._index_sampler)


def _sampler_reason(sampler: Any) -> str:
    """A sampler that goes by what the step did would be asked one step too early."""
    for _ in range(4):
        if sampler is None or isinstance(sampler, (list, tuple, range)):
            return ""
        name = type(sampler).__name__
        if not type(sampler).__module__.startswith("torch.utils.data."):
            return f"its sampler {name} may go by what the step before did"
        if getattr(sampler, "replacement", False) and getattr(sampler, "generator", None) is not None:
            return f"its sampler {name} draws from a generator of the program's while it runs"
        sampler = getattr(sampler, "sampler", None)
    return ""
