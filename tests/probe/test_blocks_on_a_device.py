"""Blocks of steps on an asynchronous device: what is timed is the device's work, whoever launches it and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.control.contention import BlockContention
from hotloop.probe.windows.knob_blocks import Shape, WhatIf
from tests.simulated_device import Program, SimulatedCuda


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(tmp_path / "probe", monkeypatch, SimulatedCuda())


def test_a_block_is_as_long_as_the_device_works(program: Program) -> None:
    # Ten kernels of 1 ms a step, launched in 0.1 ms: the host is far ahead of a device that is never idle.
    blocks = program.run_blocks(6, steps=10, discard=2, step=lambda: program.step(10, 1.0))
    assert blocks == pytest.approx([100.0] * 6, rel=0.01)


def test_a_graph_that_saves_launches_alone_is_not_faster(program: Program) -> None:
    stream = program.cuda.current_stream()
    with program.cuda.capture(program.cuda.new_stream()) as graph:
        for _ in range(10):
            graph.stream.launch(1.0)
    graph.stream = stream

    def replayed() -> None:
        graph.replay()
        program.end_step()

    eager = program.run_blocks(4, steps=10, discard=2, step=lambda: program.step(10, 1.0))
    graphed = program.run_blocks(4, steps=10, discard=2, step=replayed)
    assert sum(eager) / sum(graphed) == pytest.approx(1.0, abs=0.01)


def test_a_launch_bound_step_is_as_long_as_its_launches(program: Program) -> None:
    blocks = program.run_blocks(4, steps=10, discard=2, step=lambda: program.step(100, 0.001))
    assert blocks == pytest.approx([10.0] * 4, rel=0.02)


def test_the_device_works_on_while_facts_are_written_and_that_counts(program: Program) -> None:
    """Facts are written inside a block, and losses fetched: both wait for the device."""
    probe, host = program.probe, program.cuda.host

    def write() -> None:
        program.cuda.synchronize(0)  # what `.cpu()` does
        host.work(30)

    probe.write_facts = write  # type: ignore[method-assign]
    blocks = program.run_blocks(5, steps=10, discard=2, step=lambda: program.step(10, 1.0))
    assert blocks == pytest.approx([100.0] * 5, rel=0.02)


def test_what_if_blocks_have_the_same_clock(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockContention, "look", lambda _: None)
    monkeypatch.setattr(BlockContention, "share", lambda *_: None)
    probe = program.probe
    driver: Any = WhatIf(probe, Shape(warm_steps=2, num_steps=10, discard=2, rounds=1))
    program.page.numbers[1] = 1 << 60
    for _ in range(30):
        program.step(10, 1.0)
    (_, times), *_ = driver._report.blocks
    assert sum(times) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("home", [0, 1])
def test_the_device_on_which_the_root_lives_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: int
) -> None:
    """`cuda:1` without `set_device`: the current device is 0, and nothing is there."""
    program = Program(tmp_path / "probe", monkeypatch, SimulatedCuda(num=2))
    program.home = home
    blocks = program.run_blocks(3, steps=10, discard=2, step=lambda: program.step(10, 1.0))
    assert blocks == pytest.approx([100.0] * 3, rel=0.01)
    assert set(program.cuda.synchronized) == {home}
    program.cuda.memories[home].allocate(3 << 30)
    assert program.device.peak_bytes() == 3 << 30
    program.cuda.memories[home].num_retries = 4
    assert [(row["index"], row["num_alloc_retries"]) for row in program.device.memory()] == [(home, 4)]


def test_a_boundary_inside_a_capture_waits_for_nothing(program: Program) -> None:
    program.page.numbers[1] = 1 << 60
    with program.cuda.capture(program.cuda.new_stream()):
        for _ in range(6):
            program.end_step()
    assert program.probe.boundary.steps == 6
    assert not [note for note in program.probe.facts.notes if note["where"] != "facts"]
