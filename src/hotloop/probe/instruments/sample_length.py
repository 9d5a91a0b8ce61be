"""How long a sample is, where samples have lengths: what a collate function pads to the longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
