"""Microseconds as a trace writes them to integer nanoseconds, exactly."""

import math
from decimal import Decimal, InvalidOperation

import msgspec
import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]

NO_TIME = np.iinfo(np.int64).min
"""Stands for a time that is missing or cannot be one."""

_FLOAT_LIMIT_US = 2.0**43
"""Below it neighbouring floats are less than 1 ns apart, so that splitting off the whole microseconds recovers
every nanosecond. 2**43 us are 101 days, and clocks since boot do get there: above it the text is read."""

_LARGEST_US = 2.3e15
"""Microseconds since 1970 in the year 2042; twice the end of an event (see nesting.py) still fits an int64."""


class ImpreciseError(Exception):
    """Times too large for a float to hold their nanoseconds: read them from the text."""


def nanoseconds(values: list[int | float | None]) -> Int64:
    """Whole nanoseconds; `NO_TIME` where there is no time or where it does not fit.

    Raises:
        ImpreciseError: a fractional time beyond what a float resolves.
    """
    try:
        array = np.array(values)
    except (OverflowError, ValueError):
        return _one_by_one(values)
    if array.dtype.kind == "i":
        return np.where(np.abs(array) > _LARGEST_US, NO_TIME, array * 1000).astype(np.int64)
    if array.dtype.kind == "f":
        return _from_floats(array)
    return _one_by_one(values)


def _from_floats(array: NDArray[np.float64]) -> Int64:
    fits = np.abs(array) <= _LARGEST_US  # False for NaN as well
    array = np.where(fits, array, 0.0)
    whole = np.floor(array)
    fraction = array - whole
    if bool(np.any((np.abs(array) >= _FLOAT_LIMIT_US) & (fraction != 0))):
        raise ImpreciseError
    exact = whole.astype(np.int64) * 1000 + np.rint(fraction * 1000).astype(np.int64)
    return np.where(fits, exact, NO_TIME)


def _one_by_one(values: list[int | float | None]) -> Int64:
    return np.array([_one(value) for value in values], dtype=np.int64)


def _one(value: int | float | None) -> int:
    if value is None or not abs(value) <= _LARGEST_US:
        return NO_TIME
    if isinstance(value, float) and abs(value) >= _FLOAT_LIMIT_US and not value.is_integer():
        raise ImpreciseError
    whole = math.floor(value)
    return whole * 1000 + round((value - whole) * 1000)


def nanoseconds_from_text(values: list[msgspec.Raw]) -> Int64:
    """The same from the JSON text, for any magnitude: no float in between."""
    return np.array([_one_from_text(bytes(value)) for value in values], dtype=np.int64)


def _one_from_text(text: bytes) -> int:
    whole, _, fraction = text.strip(b'" \t\r\n').partition(b".")
    if whole.isdigit() and (fraction.isdigit() or not fraction) and len(fraction) <= 3 and len(whole) <= 15:
        return int(whole) * 1000 + int((fraction + b"000")[:3])
    try:
        exact = Decimal(text.decode().strip('"'))
    except (InvalidOperation, UnicodeDecodeError):
        return NO_TIME
    if not exact.is_finite() or abs(exact) > Decimal(_LARGEST_US):
        return NO_TIME
    return int((exact * 1000).to_integral_value())
