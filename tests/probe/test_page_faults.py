"""Page faults of a step, counted for real."""

from __future__ import annotations

import mmap
import sys

import pytest

from hotloop.probe.record.page_faults import PageFaults

PAGES = 400
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seen through getrusage")


def map_in() -> None:
    """Map a buffer in, page by page, and give it back."""
    with mmap.mmap(-1, PAGES * mmap.PAGESIZE) as buffer:
        buffer.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(PAGES):
            buffer[page * mmap.PAGESIZE] = 1


def test_a_buffer_that_is_given_back_is_faulted_in_again_in_each_step() -> None:
    faults = PageFaults()
    for step in range(1, 20):
        map_in()
        faults.look(step)
    found = faults.per_step()
    assert found is not None
    assert PAGES <= found < 1.5 * PAGES


def test_what_comes_before_the_later_half_and_after_the_end_does_not_count() -> None:
    faults = PageFaults()
    for step in range(1, 33):
        if step <= 8:
            map_in()
        faults.look(step)
    faults.end()
    map_in()
    faults.look(33)
    found = faults.per_step()
    assert found is not None
    assert found < PAGES / 10


def test_a_forked_child_counts_its_own() -> None:
    faults = PageFaults()
    for step in range(1, 9):
        faults.look(step)
    faults.after_fork()
    faults.look(1)
    assert faults.per_step() is None


def test_a_single_step_tells_nothing() -> None:
    faults = PageFaults()
    faults.look(1)
    assert faults.per_step() is None
