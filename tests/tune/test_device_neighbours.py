"""Blocks that something else on the device disturbed are void; what is ours never disturbs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hotloop.machine.devices.gpu import GpuDevice, GpuSample
from hotloop.tune.trials import device_neighbours
from hotloop.tune.trials.device_neighbours import DeviceNeighbours
from hotloop.tune.trials.void_blocks import ContentionWatch

from .test_void_blocks import _Load

OURS, FROZEN, FOREIGN = 100, 101, 900
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
