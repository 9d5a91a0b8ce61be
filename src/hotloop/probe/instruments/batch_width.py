"""How much of a batch's width none of its samples needs: where a collate function pads to a fixed length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

MAX_BATCHES = 100
MAX_DEPTH = 3
LEAST_WIDTH = 8
"""Narrower tables are features, not sequences."""


class BatchWidth:
    """Adds up widths of batches, and what of them was needed."""

    def __init__(self) -> None:
        self.whole = self.needed = 0
        self._batches = 0

    def note(self, lengths: Sequence[int], batch: Any) -> None:
        """Look at a batch.

        Args:
            lengths: of its samples, as they were before they were put together; empty: not known.
            batch: as the loader gives it.
        """
        if self._batches >= MAX_BATCHES:
            return
        self._batches += 1
        found = [
            pair for tensor in _tensors(batch, MAX_DEPTH) if (pair := _width(lengths, tensor)) is not None
        ]
        if found:
            whole, needed = max(found, key=lambda pair: pair[1] / pair[0])
            self.whole += whole
            self.needed += needed


def _width(lengths: Sequence[int], tensor: Any) -> tuple[int, int] | None:
    """Return the width of a batch of sequences, and what of it its samples need; None: it is no such batch."""
    if tensor.dim() < 2 or tensor.shape[0] < 2 or tensor.shape[1] < LEAST_WIDTH:
        return None
    width = int(tensor.shape[1])
    if len(lengths) == tensor.shape[0] and len(set(lengths)) > 1:
        return (width, max(lengths)) if max(lengths) <= width else None
    padded_before = len(set(lengths)) <= 1 and tensor.dim() == 2 and not tensor.is_floating_point()
    return (width, _filled(tensor)) if padded_before else None


def _filled(tensor: Any) -> int:
    """Return how many columns hold something: at the end each row may have one value again and again."""
    fill = tensor[0, -1]
    other = tensor != fill
    width = int(tensor.shape[1])
    if not bool((tensor[:, -1] == fill).all()):
        return width
    columns = other.any(0).nonzero()
    needed = int(columns.max()) + 1 if len(columns) else 0
    ends = other.long().cumsum(1).argmax(1) + 1  # of each row: where its last other value stands
    # Sequences differ in length; a table whose last columns are empty has rows that end at the same few places.
    return needed if int(ends.unique().numel()) > min(3, tensor.shape[0] // 2) and needed else width


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    if hasattr(value, "is_floating_point") and hasattr(value, "dim"):
        yield value
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each, depth - 1)
