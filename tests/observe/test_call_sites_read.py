"""What another program takes in the middle of a call is not the call's time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.call_sites import read_call_sites

MS = 1_000_000


def _time_s(device: str, *spent_ms: float | None) -> float:
    key = ("train.py", 12, "main", "torch.randint", "create", device, None, False)
    steps: list[Any] = [[] if each is None else [(0, 1, round(each * MS), 8)] for each in spent_ms]
    value = {"keys": [key], "steps": steps, "functions": True}
    file = DeepFile(name="call_sites", pid=1, rank=None, steps=len(steps), begin_ns=0, end_ns=MS, value=value)
    (site,) = read_call_sites(Path(), file, Timeline.__new__(Timeline)).sites
    return site.time_per_step_s


def test_one_call_in_which_the_thread_lost_its_core_does_not_count() -> None:
    assert _time_s("cpu", 0.1, 980.0, 0.1, 0.1) == pytest.approx((3 * 0.1 + 0.3) / 4 * 1e-3)


def test_a_call_that_comes_in_some_steps_only_counts_as_it_is() -> None:
    assert _time_s("cpu", None, 8.0, None, None) == pytest.approx(2e-3)


def test_waiting_for_a_device_varies_by_nature() -> None:
    assert _time_s("cuda", 0.1, 980.0, 0.1, 0.1) == pytest.approx(980.3 / 4 * 1e-3)
