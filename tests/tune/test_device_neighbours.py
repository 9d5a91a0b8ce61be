"""Blocks that something else on the device disturbed are void; what is ours never disturbs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast

import pytest

from hotloop.machine.devices.gpu import GpuDevice, GpuSample
from hotloop.model.optimization import Candidate
from hotloop.tune.executor import SwitchRecord
from hotloop.tune.trials import device_neighbours
from hotloop.tune.trials.device_looks import DeviceLooks
from hotloop.tune.trials.device_neighbours import DeviceNeighbours
from hotloop.tune.trials.switching import record_of
from hotloop.tune.trials.void_blocks import ContentionWatch
from hotloop.whatif.run import Report

from .test_void_blocks import _Load

OURS, FROZEN, FOREIGN = 100, 101, 900
_Result = TypeVar("_Result")
USUAL = GpuSample(clock_hz=1.98e9, throttle_reasons=("software power cap",))


class _Driver:
    """A driver that tells, block after block, who used the device, and how it ran."""

    def __init__(self, *blocks: tuple[dict[int, float] | None, GpuSample]) -> None:
        self._blocks = list(blocks)
        self._asked = 0
        self.looks = 0

    def devices(self) -> list[GpuDevice]:
        return [GpuDevice(index=0, name="Simulated H100", memory_bytes=80 << 30)]

    def sample(self, index: int) -> GpuSample:
        self.looks += 1
        return self._blocks[0][1]

    def process_shares(self, index: int) -> dict[int, float] | None:
        self._asked += 1
        if self._asked % 2:  # before the block
            return {}
        return self._blocks.pop(0)[0] if len(self._blocks) > 1 else self._blocks[0][0]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_neighbours, "INTERVAL_S", 0.001)


def _watch(driver: _Driver, said: Callable[[str], None] = lambda _: None) -> ContentionWatch:
    neighbours = DeviceNeighbours(driver, [0], lambda: {OURS, FROZEN}, lambda: {OURS, FROZEN, FOREIGN})
    return ContentionWatch(said, 20, _Load((), 0.0), lambda _: None, neighbours)


def _blocks(watch: ContentionWatch, driver: _Driver, num: int) -> int:
    """Run blocks of five looks each; return how many were run."""
    count = 0

    def run() -> None:
        nonlocal count
        count += 1
        until = driver.looks + 5
        while driver.looks < until:
            pass

    for _ in range(num):
        watch.block(run, OURS)
    return count


@pytest.mark.parametrize(
    ("shares", "sample", "says"),
    [
        ({OURS: 0.6, FOREIGN: 0.3}, USUAL, "another process took 30% of GPU 0"),
        (
            {OURS: 0.9},
            GpuSample(throttle_reasons=("hardware thermal slowdown",)),
            "hardware thermal slowdown",
        ),
    ],
)
def test_a_disturbed_block_is_void_and_repeated(
    shares: dict[int, float], sample: GpuSample, says: str
) -> None:
    driver, said = _Driver((shares, sample), ({OURS: 0.9}, USUAL)), list[str]()
    watch = _watch(driver, said.append)
    assert _blocks(watch, driver, 1) == 2
    assert watch.report().num_void == 1
    assert says in said[0]


def test_clocks_that_fall_void_a_block() -> None:
    fallen = GpuSample(clock_hz=1.2e9)
    driver, said = _Driver(({OURS: 0.9}, USUAL), ({OURS: 0.9}, fallen), ({OURS: 0.9}, USUAL)), list[str]()
    watch = _watch(driver, said.append)
    assert _blocks(watch, driver, 2) == 3
    assert "GPU 0 ran at 1200 MHz, before at 1980" in said[0]


def test_a_process_that_is_gone_by_now_was_another() -> None:
    """Beside our own number one that cannot be seen any more is no number of another namespace."""
    driver = _Driver(({OURS: 0.6, 51234: 0.4}, USUAL), ({OURS: 0.9}, USUAL))
    watch = _watch(driver)
    assert _blocks(watch, driver, 1) == 2


@pytest.mark.parametrize(
    "shares",
    [
        {OURS: 0.9, FROZEN: 0.0},
        {OURS: 0.9, FOREIGN: 0.05},
        {OURS: 0.5, FROZEN: 0.4},
        {51234: 0.9},  # in a container the driver gives the host's numbers: it may be ours
        None,
    ],
)
def test_our_own_arms_and_what_cannot_be_told_void_nothing(shares: dict[int, float] | None) -> None:
    driver = _Driver((shares, USUAL))
    watch = _watch(driver)
    assert _blocks(watch, driver, 3) == 3
    assert watch.report().num_void == 0


class _Looks(DeviceNeighbours):
    """Looks that begin and end when they are told to, and see what they are told to see."""

    def __init__(self, *disturbed: bool) -> None:
        super().__init__(_Driver(), [0])
        self._disturbed = list(disturbed)
        self.turn = threading.Barrier(2)

    def during(self, run: Callable[[], _Result], pid: int | None) -> tuple[_Result, str | None]:
        assert pid is None  # what is on decides over the clocks
        if not self._disturbed:
            return run(), None
        self.turn.wait(60)
        self.turn.wait(60)
        return cast(_Result, None), "another process" if self._disturbed.pop(0) else None


def _screened(*disturbed: bool) -> SwitchRecord:
    """Return what is kept of a screening's holds, one in each look."""
    neighbours, spans = _Looks(*disturbed), list[tuple[float, float]]()
    with DeviceLooks(neighbours, look_s=0.0).looking() as looks:
        for _ in disturbed:
            neighbours.turn.wait(60)
            spans.append((time.monotonic(), time.monotonic() + 1e-9))
            neighbours.turn.wait(60)
    blocks = tuple((None, (float(number),)) for number in range(len(disturbed)))
    report = Report(pid=1, rank=None, blocks=blocks, block_spans=tuple(spans))
    return record_of([report], [Candidate(name="autocast_bf16")], looks)


def test_holds_of_a_screening_are_left_out_where_the_device_was_disturbed() -> None:
    kept = _screened(False, True, False, True, False)
    assert [hold.steps_s for hold in kept.holds] == [(0.0,), (2.0,), (4.0,)]
    assert kept.num_noisy == 2


def test_on_a_device_that_is_never_quiet_every_hold_counts_and_is_called_noisy() -> None:
    kept = _screened(True, True, True, False)
    assert len(kept.holds) == 4
    assert kept.num_noisy == 3
