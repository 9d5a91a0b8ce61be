"""How far rows of token ids, or of a mask, are filled, where one value stands again and again at their ends."""

from __future__ import annotations

from typing import Any

LEAST_WIDTH = 8
"""Narrower tables are features, not sequences."""
LEAST_ENDS = 3
"""Sequences end at many places; rows of features whose last columns are empty, at few."""


def is_table(tensor: Any, num: int, width: int) -> bool:
    """Whether a tensor holds whole numbers, one row for each of so many samples."""
    return (
        width >= LEAST_WIDTH
        and num >= 2
        and tuple(tensor.shape) == (num, width)
        and not tensor.is_floating_point()
    )


def filled(tensor: Any) -> list[int] | None:
    """Return how many places of each row come before the value that fills its end; None: the rows are no sequences."""
    fill = tensor[0, -1]
    if not bool((tensor[:, -1] == fill).all()):
        return None
    ends = [int(end) for end in ((tensor != fill).long().cumsum(1).argmax(1) + 1).tolist()]
    return ends if len(set(ends)) >= min(LEAST_ENDS, len(ends)) else None
