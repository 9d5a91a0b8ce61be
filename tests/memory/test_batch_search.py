"""The search for the largest batch: it ends beside the edge, whatever the peaks between are."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from hotloop.probe.virtual_gpu.batch_search import MOST_TRIED, BatchSearch, Peaks


def search(
    room: int, reserved: Callable[[int], int], allocated: Callable[[int], int]
) -> tuple[int, int | None, int]:
    known = {size: Peaks(allocated(size), reserved(size)) for size in (8, 16)}
    tried = BatchSearch(room, known)
    num = 0
    while (size := tried.next_size()) is not None:
        known[size] = Peaks(allocated(size), reserved(size))
        num += 1
    return (*tried.found(), num)


def test_on_a_straight_line_three_batches_do() -> None:
    line = lambda size: 1000 + 7 * size  # noqa: E731
    assert search(10_000, line, line) == (1285, 1286, 4)


@given(st.integers(1, 50), st.integers(0, 5000), st.integers(1, 400), st.integers(0, 60_000))
def test_what_is_reserved_comes_in_steps(per_sample: int, fixed: int, segment: int, room: int) -> None:
    def allocated(size: int) -> int:
        return fixed + per_sample * size

    def reserved(size: int) -> int:
        return -(-allocated(size) // segment) * segment

    fits, too_large, num = search(room, reserved, allocated)
    assert num <= MOST_TRIED
    assert fits == 0 or reserved(fits) <= room
    assert too_large is None or reserved(too_large) > room
    if num < MOST_TRIED:
        assert too_large == fits + 1


def test_where_not_one_sample_fits_there_is_none() -> None:
    line = lambda size: 1000 + 7 * size  # noqa: E731
    assert search(500, line, line)[:2] == (0, 1)
