"""Whether an exception says that memory ran out, and how much was asked for."""

from __future__ import annotations

import re

STEM = "out-of-memory"

_WORDS = re.compile(
    r"out of memory|can't allocate memory|Cannot allocate memory|not enough memory|Unable to allocate|std::bad_alloc"
    r"|ALLOC_FAILED|ErrorMemoryAllocation|STATUS_NOT_INITIALIZED",
    re.IGNORECASE,
)
_UNITS = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_ASKED = re.compile(
    r"(?:tried to allocate|unable to allocate)\s+([\d.]+)\s*(bytes|B|KiB|MiB|GiB|TiB)", re.IGNORECASE
)


def says_out_of_memory(error: BaseException | None) -> BaseException | None:
    """Return the exception of a chain that says so; None: none does."""
    for _ in range(20):
        if error is None:
            return None
        torchs = type(error).__name__ == "OutOfMemoryError"
        if torchs or isinstance(error, MemoryError):
            return error
        if isinstance(error, RuntimeError | OSError) and _WORDS.search(str(error)):
            return error
        error = error.__cause__ or error.__context__
    return None


def asked_bytes(text: str) -> int | None:
    """Return how much was asked for, by the words of torch or NumPy; None: they do not say."""
    found = _ASKED.search(text)
    return round(float(found[1]) * _UNITS[_unit(found[2])]) if found else None


def _unit(word: str) -> str:
    return next(unit for unit in _UNITS if unit.lower() == word.lower())
