"""Numbers in rows and columns with the arithmetic of tensors, in plain Python: the user's process may have no NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Shape = tuple[int, ...]


class Grid:
    """Up to two dimensions of numbers; operators and broadcasting are those of tensors.

    Args:
        values: row by row.
        shape: how many of each.
    """

    def __init__(self, values: Iterable[float], shape: Shape) -> None:
        self.values = list(values)
        self.shape = shape

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[float]]) -> Grid:
        """Return rows of equal length."""
        return cls((each for row in rows for each in row), (len(rows), len(rows[0])))

    @classmethod
    def of_row(cls, row: Sequence[float]) -> Grid:
        """Return one dimension."""
        return cls(row, (len(row),))

    def rows(self) -> list[list[float]]:
        """Return the rows along the last dimension."""
        width = self.shape[-1]
        return [self.values[at : at + width] for at in range(0, len(self.values), width)]

    def reduced(self, function: Callable[[Sequence[float]], float], keepdim: bool) -> Grid:
        """Return one number for each row."""
        return Grid(map(function, self.rows()), (*self.shape[:-1], 1) if keepdim else self.shape[:-1])

    def each(self, function: Callable[[float], float]) -> Grid:
        """Return a function of each number."""
        return Grid(map(function, self.values), self.shape)

    def __add__(self, other: Any) -> Grid:
        """Return a sum."""
        return _both(operator.add, self, other)

    def __radd__(self, other: Any) -> Grid:
        """Return a sum."""
        return _both(operator.add, other, self)

    def __sub__(self, other: Any) -> Grid:
        """Return a difference."""
        return _both(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Grid:
        """Return a difference."""
        return _both(operator.sub, other, self)

    def __mul__(self, other: Any) -> Grid:
        """Return a product."""
        return _both(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Grid:
        """Return a product."""
        return _both(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Grid:
        """Return a quotient; by zero it is infinite."""
        return _both(_quotient, self, other)

    def __rtruediv__(self, other: Any) -> Grid:
        """Return a quotient; by zero it is infinite."""
        return _both(_quotient, other, self)

    def __pow__(self, other: Any) -> Grid:
        """Return a power."""
        return _both(_power, self, other)

    def __rpow__(self, other: Any) -> Grid:
        """Return a power."""
        return _both(_power, other, self)

    def __neg__(self) -> Grid:
        """Return the negative."""
        return self.each(operator.neg)


def shape_of(x: Any) -> Shape:
    """Return the shape of a grid; a number has none."""
    return x.shape if isinstance(x, Grid) else ()


def root(x: Any) -> Any:
    """Return square roots; of what has none, NaN."""
    return x.each(_root) if isinstance(x, Grid) else _root(x)


def same(one: Any, other: Grid, tolerance: float) -> bool:
    """Whether two grids have one shape and, within a relative and an equal absolute tolerance, the same numbers."""
    return shape_of(one) == other.shape and all(
        abs(mine - theirs) <= tolerance * (1 + abs(theirs))
        for mine, theirs in zip(one.values, other.values, strict=True)
    )


def _both(function: Callable[[Any, Any], float], one: Any, other: Any) -> Grid:
    """Return a function of two values, broadcast to one shape.

    Raises:
        ValueError: their shapes do not fit.
    """
    shape = _broadcast(shape_of(one), shape_of(other))
    return Grid(map(function, _spread(one, shape), _spread(other, shape)), shape)


def _broadcast(one: Shape, other: Shape) -> Shape:
    num = max(len(one), len(other))
    pairs = [
        (1,) * (num - len(one)) + one,
        (1,) * (num - len(other)) + other,
    ]
    for mine, theirs in zip(*pairs, strict=True):
        if mine != theirs and 1 not in (mine, theirs):
            raise ValueError(f"{one} and {other} do not fit")
    return tuple(max(mine, theirs) for mine, theirs in zip(*pairs, strict=True))


def _spread(x: Any, shape: Shape) -> list[float]:
    """Return a value's numbers as they are met in a larger shape."""
    if not isinstance(x, Grid):
        return [float(x)] * math.prod(shape)
    height, width = ((1, 1, *shape))[-2:]
    own_height, own_width = ((1, 1, *x.shape))[-2:]
    return [
        x.values[(row if own_height > 1 else 0) * own_width + (column if own_width > 1 else 0)]
        for row in range(height)
        for column in range(width)
    ]


def _quotient(one: float, other: float) -> float:
    if other:
        return one / other
    return math.nan if not one or math.isnan(one) else math.copysign(math.inf, one)


def _power(one: float, other: float) -> float:
    if one < 0 and other != int(other):
        return math.nan
    return math.inf if not one and other < 0 else math.pow(one, other)


def _root(x: float) -> float:
    return math.sqrt(x) if x >= 0 else math.nan
