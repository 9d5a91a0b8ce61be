"""A program that trains on a simulated device with the probe inside, held and timed as the launcher does it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.control import control_page, running_clock, step_boundary
from hotloop.probe.control.control_page import BLOCK_AT, BLOCK_NS, GO_UNTIL, STEPS, STOP, ControlPage
from hotloop.probe.device import clock as device_clock
from hotloop.probe.device.device import Cuda
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record import recorder
from hotloop.probe.record.events import Kind, begin, end
from tests.simulated_device.device import SimulatedCuda


class Program:
    """Steps of so many kernels, each of which takes the device so long and the host its launch.

    Args:
        folder: the probe's.
        monkeypatch: puts the host's clock in place.
        cuda: the device.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, cuda: SimulatedCuda) -> None:
        self.cuda = cuda
        for module in (recorder, device_clock, running_clock, step_boundary):
            monkeypatch.setattr(module, "monotonic_ns", cuda.host.clock)
        folder.mkdir(parents=True, exist_ok=True)
        self.page = ControlPage.create(folder / "control", go_until=0)
        self.home: int | None = 0
        self.device = Cuda(cuda, lambda: self.home)
        self.probe = Probe(ProbeConfig(folder=str(folder), anchor=("optimizer", 0, 1), losses=True))
        self.probe.boundary.clock.synchronize = self.device.synchronize
        self.probe.facts.device = self.device
        self.probe.recorder.thread = self.probe.recorder.trainer = threading.get_ident()
        monkeypatch.setattr(control_page.time, "sleep", self._launcher)
        self._orders: list[tuple[int, int]] = []
        self.blocks: list[float] = []
        """Milliseconds of each block, as the launcher reads them."""

    def step(self, kernels: int, kernel_ms: float, *, launch_ms: float = 0.01) -> None:
        """Take one training step: all its kernels, then the boundary."""
        for _ in range(kernels):
            self.cuda.current_stream(self.home).launch(kernel_ms, launch_ms)
        self.end_step()

    def end_step(self) -> None:
        """Let an optimizer's step end."""
        self.probe.recorder.mark(begin(Kind.OPTIMIZER))
        self.probe.recorder.mark(end(Kind.OPTIMIZER))
        self.probe.boundary.ended(Kind.OPTIMIZER, 0)

    def run_blocks(self, num: int, steps: int, discard: int, step: Callable[[], Any]) -> list[float]:
        """Let the program take blocks of steps, as an arm of a trial does; return the milliseconds of each."""
        at = self.probe.boundary.steps
        self._orders = [
            (at + n * (steps + discard) + discard, at + (n + 1) * (steps + discard)) for n in range(num)
        ]
        self.blocks = []
        self._next_order()
        for _ in range(num * (steps + discard)):
            step()
        return self.blocks

    def _launcher(self, _: float) -> None:
        """What the launcher does while the program is held: read the block, order the next one, after 50 ms."""
        row = self.page.row(0)
        assert row[STEPS] == self.probe.boundary.steps
        self.blocks.append(row[BLOCK_NS] / 1e6)
        self.cuda.host.work(50)
        if self._orders:
            self._next_order()
        else:
            self.page.numbers[GO_UNTIL] = control_page.UNLIMITED
            self.page.numbers[STOP] = 0

    def _next_order(self) -> None:
        self.page.numbers[BLOCK_AT], self.page.numbers[GO_UNTIL] = self._orders.pop(0)

    def close(self) -> None:
        self.page.close()
