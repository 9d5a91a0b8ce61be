"""Whether samples are rows of tables in memory: then one index of the table would give the whole batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 3
_NUMBERS = (int, float, bool)


def are_rows(samples: Any) -> bool:
    """Whether every tensor and array of two samples is a part of what lies in memory, of the same in both."""
    if not isinstance(samples, list) or len(samples) < 2:
        return False
    first, second = list(_tables(samples[0], MAX_DEPTH)), list(_tables(samples[-1], MAX_DEPTH))
    return any(first) and None not in first and first == second


def _tables(value: Any, depth: int) -> Iterator[int | None]:
    """Yield what each part of a sample is a row of; None: of nothing, 0: it is a number."""
    if isinstance(value, _NUMBERS):
        yield 0
    elif hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        yield storage._cdata if storage.nbytes() > value.nbytes else None
    elif hasattr(value, "nbytes") and hasattr(value, "base"):
        yield None if value.base is None else id(value.base)
    elif depth and isinstance(value, Mapping):
        for each in value.values():
            yield from _tables(each, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from _tables(each, depth - 1)
    else:
        yield None
