"""Phases on a device's own clock, on a device whose clock is ours to turn: the host runs ahead of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.model.observation import Phase
from hotloop.observe.decode.spans import DEVICE, HOST, Timeline, timelines
from hotloop.observe.steps.rhythm import find_anchor
from hotloop.observe.steps.step_windows import windows
from hotloop.probe.device import clock
from hotloop.probe.device.clock import DeviceClock
from hotloop.probe.device.device import Cuda
from hotloop.probe.record import recorder
from hotloop.probe.record.events import Kind, begin, end, size_event
from hotloop.probe.record.recorder import Recorder
from tests.simulated_device import SimulatedCuda, Stream


class _Program:
    """Records steps of data 3 ms (host alone), and 1, 1 and 0.5 ms to launch forward, backward and optimizer."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cuda = SimulatedCuda(num=2)
        for module in (recorder, clock):
            monkeypatch.setattr(module, "monotonic_ns", self.cuda.host.clock)
        self.folder = folder
        self.home = 0
        self.copies: Stream | None = None
        """The stream on which batches are fetched and copied; None: the one that trains."""
        self.recorder = Recorder(folder)
        self.clock = DeviceClock(self.recorder, Cuda(self.cuda, lambda: self.home), folder)
        self.recorder.follow(self.clock)

    def _span(self, kind: Kind, host_ms: float, device_ms: float) -> None:
        self.recorder.mark(begin(kind))
        self.cuda.current_stream(self.home).launch(device_ms, host_ms)
        self.recorder.mark(end(kind))

    def _fetch(self) -> None:
        """Three milliseconds of the host's, and a copy on the prefetcher's stream."""
        self.recorder.mark(begin(Kind.DATA))
        self.cuda.host.work(3)
        if self.copies is not None:
            with self.cuda.stream(self.copies):
                self.recorder.mark(begin(Kind.TRANSFER))
                self.copies.launch(0.2)
                self.recorder.mark(end(Kind.TRANSFER))
        self.recorder.mark(end(Kind.DATA))

    def train(self, num: int, *, forward_ms: float, backward_ms: float) -> None:
        for _ in range(num):
            self._fetch()
            self.recorder.raw(size_event(8, 0))
            self._span(Kind.FORWARD, 1, forward_ms)
            self._span(Kind.BACKWARD, 1, backward_ms)
            self._span(Kind.OPTIMIZER, 0.5, 1)
            self.recorder.flush()

    def timeline(self, clock: str) -> Timeline:
        self.cuda.synchronize(self.home)
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
    assert program.cuda.num_events <= 12


def test_a_stream_that_is_captured_takes_no_marker_and_a_replay_has_its_time(program: _Program) -> None:
    program.train(2, forward_ms=1, backward_ms=1)
    made = program.cuda.num_events
    with program.cuda.capture(program.cuda.new_stream()):
        program.train(20, forward_ms=1, backward_ms=1)
    assert program.cuda.num_events == made
    program.train(3, forward_ms=4, backward_ms=8)
    timeline = program.timeline(DEVICE)
    assert len([span for span in timeline.spans if span.kind is Kind.OPTIMIZER]) == 25
    assert program.phases_ms(DEVICE)[Phase.BACKWARD] == pytest.approx(8, abs=0.01)


def test_a_prefetcher_on_its_own_stream_does_not_make_the_clock_run_fast(program: _Program) -> None:
    """A copy stream is done long before the stream that trains: a mark there lies earlier than the one before it."""
    program.copies = program.cuda.new_stream()
    program.train(400, forward_ms=4, backward_ms=8)
    spans = [span for span in program.timeline(DEVICE).spans if span.kind is Kind.OPTIMIZER]
    spent = spans[-1].end_s - spans[0].end_s
    assert spent == pytest.approx(399 * 13e-3, rel=1e-3)


def test_a_program_that_changes_its_stream_keeps_its_clock(program: _Program) -> None:
    """Whole-network graph capture warms up on a side stream and goes on in another."""
    with program.cuda.stream(program.cuda.new_stream()):
        program.train(50, forward_ms=4, backward_ms=8)
    program.cuda.synchronize(0)
    program.train(50, forward_ms=4, backward_ms=8)
    spans = [span for span in program.timeline(DEVICE).spans if span.kind is Kind.OPTIMIZER]
    assert [span.end_s for span in spans] == sorted(span.end_s for span in spans)
    assert spans[-1].end_s - spans[50].end_s == pytest.approx(49 * 13e-3, rel=1e-2)


def test_the_clock_is_as_fine_after_an_hour(program: _Program) -> None:
    """A 32-bit float of milliseconds has steps of a quarter of a millisecond after an hour."""
    for _ in range(900):
        program.cuda.host.work(4000)
        program.train(1, forward_ms=4, backward_ms=8)
    program.train(3, forward_ms=0.1, backward_ms=8.0625)
    assert program.phases_ms(DEVICE)[Phase.BACKWARD] == pytest.approx(8.0625, abs=0.003)
    (spans,) = [program.timeline(DEVICE).spans]
    host = program.timeline(HOST).spans
    drift_s = (spans[-1].end_s - spans[0].end_s) - (host[-1].end_s - host[0].end_s)
    assert abs(drift_s) < 0.03, "the device ends at most one step after the host"


def test_the_clock_is_that_of_the_device_on_which_the_root_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _Program(tmp_path, monkeypatch)
    program.home = 1
    program.clock = DeviceClock(program.recorder, Cuda(program.cuda, lambda: 1), tmp_path)
    program.recorder.follow(program.clock)
    program.train(10, forward_ms=4, backward_ms=8)
    assert program.phases_ms(DEVICE)[Phase.BACKWARD] == pytest.approx(8, abs=0.01)


def test_a_device_that_fails_leaves_the_hosts_records(program: _Program) -> None:
    program.train(3, forward_ms=1, backward_ms=1)
    program.cuda.fails = True
    with pytest.raises(RuntimeError, match="launch failure"):
        program.recorder.mark(begin(Kind.SAVE))
    program.recorder.mark(end(Kind.SAVE))
    program.train(3, forward_ms=1, backward_ms=1)
    assert len([span for span in program.timeline(HOST).spans if span.kind is Kind.OPTIMIZER]) == 6
    assert program.timeline(HOST).spans[12].kind is Kind.SAVE
