"""Samples kept in memory: one by one, or collated already, so that a batch is one indexing operation per tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import copy_of, same


class KeptSamples(Protocol):
    """What a store of samples can do."""

    def add(self, samples: Sequence[Any]) -> None:
        """Keep the next samples, in the order of their indices."""

    def batch(self, index: Sequence[int]) -> Any:
        """Return the batch of these indices, as the loader would have collated it."""

    def matches(self, index: int, fresh: Any) -> bool:
        """Whether a sample that was just read is the one that is kept."""


class ListOfSamples:
    """Samples as the data set returned them, collated by the loader's own function.

    Args:
        collate: the loader's `collate_fn`.
    """

    def __init__(self, collate: Any) -> None:
        self._collate = collate
        self._samples: list[Any] = []

    def add(self, samples: Sequence[Any]) -> None:
        """Keep copies, should the data set hand out what it holds itself."""
        self._samples.extend(copy_of(sample) for sample in samples)

    def batch(self, index: Sequence[int]) -> Any:
        """Collate copies, which the collate function may change."""
        return self._collate([copy_of(self._samples[i]) for i in index])

    def matches(self, index: int, fresh: Any) -> bool:
        """Compare value by value."""
        return same(self._samples[index], fresh)


class Columns:
    """Samples collated already: one tensor (or list of strings) per leaf, with a row per sample.

    Stands in for torch's own `default_collate` and for samples of tensors, arrays, numbers and strings of equal shapes.

    Args:
        first: a sample, whose structure all others must have.
        length: how many there will be.

    Raises:
        CannotKeep: the samples are made of something else.
    """

    def __init__(self, first: Any, length: int) -> None:
        self._first = _structure_of(first)
        self._length = length
        self._columns: list[Any] = []
        self._filled = 0

    def add(self, samples: Sequence[Any]) -> None:
        """Collate the next samples into the columns.

        Raises:
            CannotKeep: a sample differs from the first in structure or shape.
        """
        if any(_structure_of(sample) != self._first for sample in samples):
            raise CannotKeep("its samples differ in structure or shape")
        for number, values in enumerate(zip(*map(_leaves, samples), strict=True)):
            self._put(number, _collated(list(values)))
        self._filled += len(samples)

    def _put(self, number: int, rows: Any) -> None:
        import torch

        if isinstance(rows, list):
            if number == len(self._columns):
                self._columns.append([])
            self._columns[number].extend(rows)
            return
        if number == len(self._columns):
            self._columns.append(torch.empty((self._length, *rows.shape[1:]), dtype=rows.dtype))
        self._columns[number][self._filled : self._filled + len(rows)] = rows

    def batch(self, index: Sequence[int]) -> Any:
        """Take the rows; they are copies."""
        import torch

        rows = torch.as_tensor(index)
        taken = [
            [column[i] for i in index] if isinstance(column, list) else _rows_of(column, rows)
            for column in self._columns
        ]
        return _collated_like(self._first, iter(taken))

    def matches(self, index: int, fresh: Any) -> bool:
        """Compare as batches of one."""
        return same(self.batch([index]), _collated([fresh]))


def _rows_of(column: Any, rows: Any) -> Any:
    """Take rows; in a worker straight into shared memory, as `default_collate` does.

    Sent from the heap instead, a worker's heap grew by every batch that it made: 200 MB of a set of 400 MB.
    """
    import torch

    if torch.utils.data.get_worker_info() is None:
        return column.index_select(0, rows)
    shape = (len(rows), *column.shape[1:])
    storage = column._typed_storage()._new_shared(math.prod(shape), device=column.device)
    return torch.index_select(column, 0, rows, out=column.new(storage).resize_(*shape))


def _collated(values: list[Any]) -> Any:
    from torch.utils.data import default_collate

    return default_collate(values)


def _structure_of(sample: Any) -> Any:
    """Return the sample's nesting, with the kind and shape of each leaf."""
    import torch

    kind = type(sample)
    if kind in {tuple, list}:
        return (kind, *map(_structure_of, sample))
    if kind is dict:
        return (kind, *((key, _structure_of(value)) for key, value in sample.items()))
    if isinstance(sample, (int, float, str, bytes)):
        return kind
    if kind is torch.Tensor and sample.layout is torch.strided and sample.device.type == "cpu":
        return (kind, tuple(sample.shape), sample.dtype)
    if kind.__module__ == "numpy" and hasattr(sample, "dtype") and sample.dtype.kind in "biufc":
        return (kind, tuple(sample.shape), sample.dtype)
    raise CannotKeep(f"its samples hold a {kind.__name__}")


def _leaves(sample: Any) -> list[Any]:
    if type(sample) in {tuple, list}:
        return [leaf for part in sample for leaf in _leaves(part)]
    if type(sample) is dict:
        return [leaf for part in sample.values() for leaf in _leaves(part)]
    return [sample]


def _collated_like(structure: Any, columns: Any) -> Any:
    """Put collated leaves together as `default_collate` does: a tuple becomes a list."""
    kind = structure[0] if isinstance(structure, tuple) else structure
    if kind in {tuple, list}:
        return [_collated_like(part, columns) for part in structure[1:]]
    if kind is dict:
        return {key: _collated_like(part, columns) for key, part in structure[1:]}
    return next(columns)
