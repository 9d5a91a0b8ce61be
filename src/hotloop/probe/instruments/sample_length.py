"""How long samples are, and how much of the batch that was made of them is padding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hotloop.probe.instruments.filled_rows import filled, is_table

MAX_DEPTH = 3


def length_of(sample: Any) -> int | None:
    """Return the size of the first dimension of a sample's first tensor, array, list or text; None: it has none."""
    return _length(sample, MAX_DEPTH)


def _length(value: Any, depth: int) -> int | None:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    if isinstance(value, (str, bytes)):
        return len(value)
    parts: Sequence[Any] = ()
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, tuple):
        parts = value
    elif isinstance(value, list):
        if not value or isinstance(value[0], (int, float)):
            return len(value)
        parts = value
    found = (_length(part, depth - 1) for part in parts) if depth else iter(())
    return next((length for length in found if length is not None), None)


def padded(lengths: Sequence[int]) -> int:
    """Return how much is added when all are padded to the longest."""
    return len(lengths) * max(lengths) - sum(lengths) if lengths else 0


class Padding(NamedTuple):
    """How much of a batch is padding, in positions."""

    length: int
    """Of all samples together."""
    to_longest: int
    """Added to reach the batch's longest sample."""
    beyond: int
    """Added beyond that."""


def padding(lengths: Sequence[int], batch: Any) -> Padding:
    """Return how a batch was padded; one whose samples are concatenated, or listed, was not.

    Args:
        lengths: of the samples.
        batch: that was made of them.
    """
    num, longest = len(lengths), max(lengths, default=0)
    if len(set(lengths)) == 1:
        return _padded_before(num, longest, batch)
    widths = [] if len(set(lengths)) < 2 else [_width(shape, num) for shape in _shapes(batch, MAX_DEPTH)]
    widths = [width for width in widths if width >= longest]
    if not widths:
        return Padding(sum(lengths), 0, 0)
    return Padding(sum(lengths), padded(lengths), num * (min(widths) - longest))


def _padded_before(num: int, width: int, batch: Any) -> Padding:
    """Return how much of samples of one length is padding at their ends: of token ids, a mask, both."""
    tables = (each for each in _tensors(batch, MAX_DEPTH) if is_table(each, num, width))
    ends = [found for each in tables if (found := filled(each)) is not None]
    if not ends:
        return Padding(num * width, 0, 0)
    least = max(ends, key=max)  # what holds most says how much is needed
    return Padding(sum(least), padded(least), num * (width - max(least)))


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    if hasattr(value, "is_floating_point"):
        yield value
    elif depth and isinstance(value, (Mapping, list, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(part, depth - 1)


def _width(shape: Sequence[int], num: int) -> int:
    """Return the positions of each sample in a tensor, batch first or second; 0: it is no stack of so many."""
    if len(shape) < 2:
        return 0
    return shape[1] if shape[0] == num else shape[0] if shape[1] == num else 0


def _shapes(value: Any, depth: int) -> Iterator[Sequence[int]]:
    shape = getattr(value, "shape", None)
    if shape is not None:
        yield tuple(shape)
    elif depth:
        parts = value.values() if isinstance(value, Mapping) else value
        if isinstance(parts, (list, tuple)) or parts is not value:
            for part in parts:
                yield from _shapes(part, depth - 1)
