"""Whether a sample asks for the time: its own calls count, and those of nobody else."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest

from hotloop.optimize.dataset.clocks import asks_for_time


@pytest.fixture
def timed_collections() -> Iterator[list[float]]:
    """Collect at every few objects, and let something take the time of it, as a test framework does."""
    stamps: list[float] = []

    def stamp(*_: object) -> None:
        stamps.append(time.perf_counter())

    before = gc.get_threshold()
    gc.callbacks.append(stamp)
    gc.set_threshold(1)
    yield stamps
    gc.set_threshold(*before)
    gc.callbacks.remove(stamp)


def many_objects() -> None:
    assert len([[number] for number in range(1000)]) == 1000


def test_a_clock_is_named() -> None:
    assert asks_for_time(time.perf_counter) == "time.perf_counter"
    assert asks_for_time(many_objects) is None


def test_what_others_do_at_a_collection_is_not_the_samples_doing(timed_collections: list[float]) -> None:
    many_objects()
    assert timed_collections
    assert asks_for_time(many_objects) is None
    assert gc.isenabled()


def test_collections_stay_off_where_they_were_off() -> None:
    gc.disable()
    try:
        assert asks_for_time(many_objects) is None
        assert not gc.isenabled()
    finally:
        gc.enable()
