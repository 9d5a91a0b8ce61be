"""How much memory Python objects take, by looking at a few of them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

LOOKED_AT = 64
"""Entries of a container, evenly spaced: the others are taken to be like them."""
DEPTH = 3
PAGE_BYTES = 4096
HEADER_BYTES = 128
"""Of a tensor or an array, whose data lies elsewhere (80 to 120 bytes in CPython 3.12)."""


def held_bytes(value: Any, depth: int = DEPTH) -> float:
    """Return what an object and those in it take, the data of tensors and arrays included."""
    if has_data(value):
        return float(value.nbytes)
    return _size(value) + _inside(value, depth, held_bytes)


def header_bytes(value: Any, depth: int = DEPTH) -> float:
    """Return what is copied for a process that only reads an object: the pages with reference counts."""
    if has_data(value) and not _is_of_objects(value):
        return float(HEADER_BYTES)
    return min(_size(value), PAGE_BYTES) + _inside(value, depth, header_bytes)


def has_data(value: Any) -> bool:
    """Whether it is a tensor or an array."""
    return type(value).__name__ in {"Tensor", "Parameter", "ndarray"} and hasattr(value, "nbytes")


def entries(value: Any) -> Iterator[Any]:
    """Yield some entries of a container, evenly spaced; of a dictionary keys and values."""
    every = max(1, len(value) // LOOKED_AT)
    if isinstance(value, dict):
        for at, pair in enumerate(value.items()):
            if at // every >= LOOKED_AT:
                return
            if at % every == 0:
                yield pair
    else:
        yield from (value[at] for at in range(0, len(value), every)[:LOOKED_AT])


def is_sized(value: Any) -> bool:
    """Whether its entries can be looked at."""
    if has_data(value):
        return _is_of_objects(value) and int(value.ndim) == 1
    return isinstance(value, list | tuple | dict | deque)


def _is_of_objects(value: Any) -> bool:
    return bool(getattr(getattr(value, "dtype", None), "kind", None) == "O")


def _inside(value: Any, depth: int, size: Callable[[Any, int], float]) -> float:
    if not depth or not is_sized(value) or not len(value):
        return 0.0
    some = list(entries(value))
    # A pair of a dictionary is made for this look: of it, key and value count alone.
    parts = [pair for each in some for pair in each] if isinstance(value, dict) else some
    return sum(size(part, depth - 1) for part in parts) * len(value) / len(some)


def _size(value: Any) -> float:
    try:
        return float(sys.getsizeof(value))
    except Exception:  # a `__sizeof__` of the program's
        return 0.0
