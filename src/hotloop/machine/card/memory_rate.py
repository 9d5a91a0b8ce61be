"""Bandwidth of main memory, all usable cores at once, with numpy alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hotloop.machine.card.repeat import measure_rate
from hotloop.model.machine import Rate

_CACHE_FACTOR = 4
"""STREAM's rule: each array at least four times the last-level cache, or the cache is measured."""
_MIN_ARRAY_BYTES = 64 << 20
_MAX_ARRAY_BYTES = 1 << 30
_MEMORY_SHARE = 1 / 12
"""Three arrays take at most a quarter of the free memory."""
_WORDS_PER_ELEMENT = 5
"""s*c reads one and writes one, adding b reads two and writes one; write-allocate traffic is not counted."""

_Arrays = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def array_bytes(last_level_cache_bytes: int | None, available_bytes: int) -> int:
    """Return how large each of the triad's three arrays has to be."""
    wanted = max(_MIN_ARRAY_BYTES, _CACHE_FACTOR * (last_level_cache_bytes or 0))
    return int(min(wanted, _MAX_ARRAY_BYTES, available_bytes * _MEMORY_SHARE))


def memory_rate(num_threads: int, size_bytes: int, budget_s: float = 1.5) -> Rate:
    """Return the bytes per second of a[:] = b + s*c over float64 arrays of this size.

    numpy lets other threads run during an operation, so one thread a core reaches the machine's bandwidth;
    each thread first touches its own part, so that its pages lie on its own memory node.
    """
    num = size_bytes // 8 // num_threads
    with ThreadPoolExecutor(num_threads) as pool:
        parts = list(pool.map(_touched, [num] * num_threads))

        def triad() -> float:
            list(pool.map(_triad, parts))
            return 8.0 * _WORDS_PER_ELEMENT * num * num_threads

        method = f"numpy triad in two passes, {num_threads} threads, 3 arrays of {size_bytes / 1e6:.0f} MB"
        return measure_rate(triad, method, budget_s=budget_s)


def _touched(num: int) -> _Arrays:
    return np.zeros(num), np.ones(num), np.ones(num)


def _triad(arrays: _Arrays) -> None:
    a, b, c = arrays
    np.multiply(c, 3.0, out=a)
    np.add(a, b, out=a)
