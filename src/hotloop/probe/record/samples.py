"""What the samples of a loader are made of, seen once, where torch's own function collates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def look_once(iterator: Any, told: Callable[[bool], None]) -> None:
    """Tell of the next samples that an iterator without workers collates whether all of its samples are rows.

    Samples in random order show that: those of a batch are any of the data set's (see `are_rows`).

    Args:
        iterator: of a DataLoader; where a function of the program's own collates, or orders, nothing is told.
        told: called once.
    """
    from torch.utils.data import default_collate

    fetcher = iterator.__dict__.get("_dataset_fetcher")
    if fetcher is None or fetcher.collate_fn is not default_collate or not _is_shuffled(iterator):
        return

    def once(samples: Any) -> Any:
        fetcher.collate_fn = default_collate
        told(are_rows(samples))
        return default_collate(samples)

    fetcher.collate_fn = once


def _is_shuffled(iterator: Any) -> bool:
    from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler

    batches = iterator._index_sampler
    return type(batches) is BatchSampler and type(batches.sampler) in {RandomSampler, DistributedSampler}


def are_rows(samples: Sequence[Any]) -> bool:
    """Whether samples are tuples of tensors, arrays and numbers, alike: one column of a table for each part."""
    first = samples[0]
    if type(first) not in {tuple, list} or len(samples) < 2:
        return False
    kinds = [_kind(part) for part in first]
    return None not in kinds and all([_kind(part) for part in each] == kinds for each in samples)


def _kind(part: Any) -> Any:
    """Return type, shape and element type of a part; None: no column of a table can be made of it."""
    import torch

    if type(part) is torch.Tensor:
        plain = part.layout is torch.strided and part.device.type == "cpu"
        return (torch.Tensor, part.shape, part.dtype) if plain else None
    if type(part).__module__ == "numpy" and hasattr(part, "dtype"):
        return (type(part), part.shape, part.dtype) if part.dtype.kind in "biuf" else None
    return type(part) if type(part) in {int, float, bool} else None
