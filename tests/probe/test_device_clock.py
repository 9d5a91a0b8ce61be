"""Phases on a device's own clock, on a device whose clock is ours to turn: the host runs ahead of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hotloop.model.observation import Phase
from hotloop.observe.decode.spans import DEVICE, HOST, Timeline, timelines
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.observe.steps.step_windows import windows
from hotloop.probe import device_clock
from hotloop.probe.device_clock import DeviceClock
from hotloop.probe.record import recorder
from hotloop.probe.record.events import Kind, begin, end, size_event
from hotloop.probe.record.recorder import Recorder

_MS = 1_000_000


class _Device:
    """A stream that works off what the host puts into it."""

    def __init__(self) -> None:
        self.host_ns = 0
        self.free_ns = 0
        """When the device has done all that it was given."""
        self.num_made = 0
        self.captures = False
        self.fails = False

    def clock(self) -> int:
        return self.host_ns

    def work(self, host_ms: float, device_ms: float) -> None:
        self.host_ns += int(host_ms * _MS)
        self.free_ns = max(self.free_ns, self.host_ns) + int(device_ms * _MS)

    def synchronize(self) -> None:
        self.host_ns = max(self.host_ns, self.free_ns)

    def capturing(self) -> bool:
        return self.captures

    def marker(self) -> _Marker:
        self.num_made += 1
        return _Marker(self)


@dataclass
class _Marker:
    device: _Device
    at_ns: int = 0

    def record(self) -> None:
        if self.device.fails:
            raise RuntimeError("the device is lost")
        self.at_ns = max(self.device.host_ns, self.device.free_ns)

    def query(self) -> bool:
        return self.at_ns <= self.device.host_ns

    def elapsed_time(self, end_event: _Marker) -> float:
        return (end_event.at_ns - self.at_ns) / 1e6


class _Program:
    """Records steps of data 3 ms (host alone), and 1, 1 and 0.5 ms to launch forward, backward and optimizer."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.device = _Device()
        for module in (recorder, device_clock):
            monkeypatch.setattr(module, "monotonic_ns", self.device.clock)
        self.folder = folder
        self.recorder = Recorder(folder)
        self.recorder.follow(DeviceClock(self.recorder, self.device, folder))

    def _span(self, kind: Kind, host_ms: float, device_ms: float) -> None:
        self.recorder.mark(begin(kind))
        self.device.work(host_ms, device_ms)
        self.recorder.mark(end(kind))

    def train(self, num: int, *, forward_ms: float, backward_ms: float) -> None:
        for _ in range(num):
            self._span(Kind.DATA, 3, 0)
            self.recorder.raw(size_event(8, 0))
            self._span(Kind.FORWARD, 1, forward_ms)
            self._span(Kind.BACKWARD, 1, backward_ms)
            self._span(Kind.OPTIMIZER, 0.5, 1)
            self.recorder.flush()

    def timeline(self, clock: str) -> Timeline:
        self.device.synchronize()
        self.recorder.flush()
        (timeline,) = timelines(self.folder, {}, clock).values()
        return timeline

    def phases_ms(self, clock: str) -> dict[Phase, float]:
        timeline = self.timeline(clock)
        anchor = find_anchor(timeline.spans)
        assert anchor is not None
        last = windows(timeline, anchor)[-1]
        return {phase: spent * 1e3 for phase, spent in last.phases.items() if spent > 1e-6}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Program:
    return _Program(tmp_path, monkeypatch)


def test_a_device_that_is_behind_has_no_wait_for_data(program: _Program) -> None:
    program.train(10, forward_ms=4, backward_ms=8)
    assert program.phases_ms(HOST) == pytest.approx(
        {Phase.DATA: 3, Phase.FORWARD: 1, Phase.BACKWARD: 1, Phase.OPTIMIZER: 0.5}
    )
    assert program.phases_ms(DEVICE) == pytest.approx(
        {Phase.FORWARD: 4, Phase.BACKWARD: 8, Phase.OPTIMIZER: 1}
    )


def test_a_device_that_is_ahead_waits_for_data(program: _Program) -> None:
    program.train(10, forward_ms=0.5, backward_ms=0.5)
    phases = program.phases_ms(DEVICE)
    assert phases[Phase.DATA] == pytest.approx(2), "3 ms, in the first of which the optimizer's step ran"
    assert sum(phases.values()) == pytest.approx(5.5)


def test_batch_sizes_come_along(program: _Program) -> None:
    program.train(3, forward_ms=4, backward_ms=8)
    sizes = program.timeline(DEVICE).sizes
    assert [size.samples for size in sizes] == [8, 8, 8]


def test_markers_are_used_again(program: _Program) -> None:
    program.train(50, forward_ms=0.1, backward_ms=0.1)
    assert program.device.num_made <= 12


def test_a_stream_that_is_captured_takes_no_marker(program: _Program) -> None:
    program.train(2, forward_ms=1, backward_ms=1)
    made = program.device.num_made
    program.device.captures = True
    program.train(20, forward_ms=1, backward_ms=1)
    assert program.device.num_made == made
    program.device.captures = False
    program.train(3, forward_ms=4, backward_ms=8)
    timeline = program.timeline(DEVICE)
    assert len([span for span in timeline.spans if span.kind is Kind.OPTIMIZER]) == 25
    assert program.phases_ms(DEVICE)[Phase.BACKWARD] == pytest.approx(8)


def test_a_device_that_fails_leaves_the_hosts_records(program: _Program) -> None:
    program.train(3, forward_ms=1, backward_ms=1)
    program.device.fails = True
    with pytest.raises(RuntimeError, match="lost"):
        program.recorder.mark(begin(Kind.SAVE))
    program.recorder.mark(end(Kind.SAVE))
    program.train(3, forward_ms=1, backward_ms=1)
    assert len([span for span in program.timeline(HOST).spans if span.kind is Kind.OPTIMIZER]) == 6
    assert program.timeline(HOST).spans[12].kind is Kind.SAVE
