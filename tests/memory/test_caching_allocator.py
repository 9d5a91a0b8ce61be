"""What torch's caching allocator reserves for a sequence of allocations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.probe.virtual_gpu.caching_allocator import (
    LARGE_SEGMENT,
    MIB,
    SMALL_SEGMENT,
    CachingAllocator,
    OutOfMemory,
)


def test_a_small_block_takes_a_segment_of_two_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 1)
    assert (allocator.allocated, allocator.reserved) == (512, SMALL_SEGMENT)


def test_small_blocks_share_a_segment() -> None:
    allocator = CachingAllocator()
    for key in range(4):
        allocator.allocate(key, 512 << 10)
    assert (allocator.allocated, allocator.reserved) == (2 * MIB, SMALL_SEGMENT)


def test_a_block_below_ten_mib_takes_a_part_of_twenty() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 3 * MIB)
    allocator.allocate(1, 9 * MIB)
    assert allocator.reserved == LARGE_SEGMENT


def test_a_large_block_has_a_segment_of_its_own_in_steps_of_two_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 10 * MIB + 1)
    assert allocator.reserved == 12 * MIB


def test_a_rest_of_a_large_block_below_a_mib_stays_with_it() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 11 * MIB + 512)
    assert allocator.allocated == 12 * MIB


def test_what_was_freed_is_used_again() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 40 * MIB)
    allocator.free(0)
    allocator.allocate(1, 38 * MIB)
    assert allocator.reserved == 40 * MIB
    assert allocator.peak_allocated == 40 * MIB


def test_free_neighbours_are_merged() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 5 * MIB)
    allocator.allocate(1, 5 * MIB)
    allocator.free(0)
    allocator.free(1)
    allocator.allocate(2, 9 * MIB)
    assert allocator.reserved == LARGE_SEGMENT


def test_fragmented_memory_is_no_use_for_a_larger_block() -> None:
    allocator = CachingAllocator()
    for key in range(3):
        allocator.allocate(key, 6 * MIB)
    allocator.free(1)
    allocator.allocate(3, 8 * MIB)
    assert allocator.reserved == 2 * LARGE_SEGMENT


def test_at_the_limit_free_segments_are_given_back_first() -> None:
    allocator = CachingAllocator(limit=50 * MIB)
    allocator.allocate(0, 40 * MIB)
    allocator.free(0)
    allocator.allocate(1, 44 * MIB)
    assert (allocator.num_retries, allocator.reserved) == (1, 44 * MIB)


def test_what_does_not_fit_is_refused_with_what_is_held() -> None:
    allocator = CachingAllocator(limit=50 * MIB)
    allocator.allocate(0, 40 * MIB)
    with pytest.raises(OutOfMemory) as refusal:
        allocator.allocate(1, 20 * MIB)
    assert (refusal.value.requested, refusal.value.allocated) == (20 * MIB, 40 * MIB)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 64 * MIB)), max_size=60))
def test_the_books_balance(requests: list[tuple[bool, int]]) -> None:
    allocator = CachingAllocator()
    live: dict[int, int] = {}
    for key, (frees, num_bytes) in enumerate(requests):
        if frees and live:
            allocator.free(live.popitem()[0])
        else:
            allocator.allocate(key, num_bytes)
            live[key] = num_bytes
        assert sum(live.values()) <= allocator.allocated <= allocator.reserved
    for key in live:
        allocator.free(key)
    assert allocator.allocated == 0
    allocator.empty_cache()
    assert allocator.reserved == 0
