"""Columns that grow chunk by chunk, and strings that are kept once."""

import re
from collections.abc import Sequence
from operator import attrgetter
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

NONE = -1
"""Stands for a missing id or index in integer columns."""

MAX_TEXT = 64
"""Characters of an id that are looked at: `stream 7` has eight."""
_DIGITS = re.compile(r"-?\d+")
_INT64 = np.iinfo(np.int64)


class Interner(dict[Any, int]):
    """Gives each distinct value the next index; `values` lists them."""

    def __init__(self) -> None:
        super().__init__()
        self.values_in_order: list[Any] = []

    def __missing__(self, key: Any) -> int:
        """Give a new value its index."""
        index = len(self.values_in_order)
        self.values_in_order.append(key)
        self[key] = index
        return index


class Table:
    """Named columns, each a list of arrays until `finish` joins them."""

    def __init__(self, **dtypes: type[np.generic]) -> None:
        self._dtypes = dtypes
        self._parts: dict[str, list[Array]] = {name: [] for name in dtypes}
        self.num_rows = 0

    def append(self, num_rows: int, columns: dict[str, Array | Sequence[int]]) -> None:
        """Add rows; every column has to be there."""
        for name, dtype in self._dtypes.items():
            self._parts[name].append(np.asarray(columns[name], dtype=dtype))
        self.num_rows += num_rows

    def finish(self) -> dict[str, Array]:
        """Each column as one array; the parts are given up as they are joined."""
        return {
            name: np.concatenate(parts) if (parts := self._parts.pop(name)) else np.empty(0, dtype)
            for name, dtype in self._dtypes.items()
        }


def integers(values: list[Any], missing: int = NONE) -> NDArray[np.int64]:
    """Ids and counts as int64: numbers in text are read, what is none or too large becomes `missing`."""
    if set(map(type, values)) <= {int, NoneType}:
        # By type first: among texts NumPy makes every row as wide as the longest, and one had a megabyte.
        try:
            return np.array([missing if value is None else value for value in values], dtype=np.int64)
        except OverflowError:
            pass
    return np.array([_integer(value, missing) for value in values], dtype=np.int64)


def _integer(value: Any, missing: int) -> int:
    if type(value) is int:
        return value if _INT64.min <= value <= _INT64.max else missing
    if isinstance(value, float) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, str):
        found = _DIGITS.search(value[:MAX_TEXT])
        return int(found.group()) if found and len(found.group()) < 19 else missing
    return missing


def column(items: list[Any], name: str, missing: int = NONE) -> NDArray[np.int64]:
    """One attribute of each item as int64."""
    return integers(list(map(attrgetter(name), items)), missing)
