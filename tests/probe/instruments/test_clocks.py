"""The profiler's clock and the probe's, on one time line."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hotloop.probe.instruments.torch_profiler import NUM_READINGS, unix_minus_monotonic_ns

APART, LOST = 10**18, 5_000_000
"""Nanoseconds."""


def test_who_loses_the_core_between_two_readings_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test saw all memory of a backward given back after it: its events were half a millisecond late."""

    def clock() -> Iterator[int]:
        now = 0
        for number in range(3 * NUM_READINGS):
            now += 100 if number >= 3 * (NUM_READINGS - 1) else LOST
            yield now

    ticks, last = clock(), 0

    def monotonic() -> int:
        nonlocal last
        last = next(ticks)
        return last

    monkeypatch.setattr(time, "monotonic_ns", monotonic)
    monkeypatch.setattr(time, "time_ns", lambda: APART + monotonic())
    assert unix_minus_monotonic_ns() == APART
