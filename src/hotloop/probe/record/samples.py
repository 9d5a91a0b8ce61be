"""What the samples of a loader are made of, seen once, where torch's own function collates them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def look_once(iterator: Any, told: Callable[[bool], None]) -> None:
    """Tell of the next samples that an iterator without workers collates whether each is a row (see `are_rows`).

    Args:
        iterator: of a DataLoader; where a function of the program's own collates, nothing is told.
        told: called once.
    """
    from torch.utils.data import default_collate

    fetcher = iterator.__dict__.get("_dataset_fetcher")
    if fetcher is None or not fetcher.auto_collation or fetcher.collate_fn is not default_collate:
        return

    def once(samples: Any) -> Any:
        fetcher.collate_fn = default_collate
        told(are_rows(samples))
        return default_collate(samples)

    fetcher.collate_fn = once


def are_rows(samples: Sequence[Any]) -> bool:
    """Whether samples are tuples of tensors, arrays and numbers: one column of a table for each part."""
    first = samples[0]
    return type(first) in {tuple, list} and len(samples) > 1 and all(_is_value(part) for part in first)


def _is_value(part: Any) -> bool:
    import torch

    if type(part) is torch.Tensor:
        return part.layout is torch.strided and part.device.type == "cpu"
    if type(part).__module__ == "numpy" and hasattr(part, "dtype"):
        return bool(part.dtype.kind in "biuf")
    return type(part) in {int, float, bool}
