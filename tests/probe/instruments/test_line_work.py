"""The work of lines: operators, nodes of the graph and their backward, of a program whose lines are known."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hotloop.model.line_work import LineWork, StepWork
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import Timeline
from hotloop.observe.profile.line_work import read_line_work
from hotloop.probe.instruments import line_trace
from hotloop.probe.instruments.instrument import Unavailable
from hotloop.probe.instruments.line_work import LineWork as Instrument
from hotloop.probe.probe import Probe

PROGRAM = """
import torch
import torch.nn.functional as F
model = torch.nn.Linear(16, 8)
x, y = torch.rand(64, 16), torch.randint(8, (64,))
def penalty(rows):
    total = 0.0
    for row in rows:  # loop
        total = total + (row - row.mean()).square().mean()  # body
    return total
def step():
    out = model(x)  # model
    loss = F.cross_entropy(out, y)  # loss
    loss = loss + penalty(out)  # call
    loss.backward()  # backward
"""
NUM_ROWS = 64
OF_A_ROW = 5
"""`mean`, `sub`, `square`, `mean`, `add`: as many nodes."""


def followed(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch, steps: int = 2
) -> dict[str, LineWork]:
    """Return the work of each marked line."""
    work, marks = _followed(tmp_path, probe, monkeypatch, steps)
    return {
        mark: line for mark, number in marks.items() if (line := work.at(str(tmp_path / "own.py"), number))
    }


def _followed(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch, steps: int
) -> tuple[StepWork, dict[str, int]]:
    path, text = tmp_path / "own.py", textwrap.dedent(PROGRAM)
    path.write_text(text)
    module = ModuleType("own")
    monkeypatch.setitem(sys.modules, "own", module)
    exec(compile(text, str(path), "exec"), vars(module))
    instrument = Instrument(probe)
    instrument.start()
    try:
        for _ in range(steps):
            module.step()
            instrument.step()
    finally:
        value = instrument.stop()
    marks = {line.rpartition("# ")[2]: at for at, line in enumerate(text.splitlines(), 1) if "# " in line}
    file = DeepFile(name="line_work", pid=1, rank=None, steps=steps, begin_ns=0, end_ns=1, value=value)
    return read_line_work(tmp_path, file, Timeline.__new__(Timeline)), marks


def test_lines_have_the_operators_and_nodes_that_they_and_their_calls_make(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = followed(tmp_path, probe, monkeypatch)
    assert (lines["body"].runs, lines["call"].runs) == (NUM_ROWS, 1)
    assert lines["body"].operators == lines["body"].nodes == NUM_ROWS * OF_A_ROW
    assert lines["call"].nodes == NUM_ROWS * OF_A_ROW + 1 + 1, "the rows, `unbind` and the addition"
    assert lines["backward"].nodes == 0
    shares = [lines[mark].backward_share for mark in ("model", "loss", "call")]
    assert 0.9 < sum(shares) <= 1.0, "the rest is accumulated gradients"
    assert lines["body"].backward_share <= lines["call"].backward_share


def test_only_what_runs_again_repeats(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = followed(tmp_path, probe, monkeypatch)
    assert lines["loss"].forward_repeated_s == lines["loss"].backward_repeated_share == 0.0
    assert lines["body"].forward_repeated_s > 0.0
    assert 0.0 < lines["body"].backward_repeated_share <= lines["body"].backward_share


def test_a_program_that_is_traced_is_left_alone(probe: Probe) -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        with pytest.raises(Unavailable, match="trace function"):
            Instrument(probe).start()
    finally:
        sys.settrace(before)


def test_a_step_of_too_many_lines_is_followed_at_its_beginning(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_trace, "MAX_EVENTS", 50)
    work, marks = _followed(tmp_path, probe, monkeypatch, 1)
    assert (work.num_steps, work.backward_s) == (0, None)
    assert work.at(str(tmp_path / "own.py"), marks["body"]) is not None
    assert sys.gettrace() is None


def test_the_trace_functions_of_the_program_s_frames_come_back(probe: Probe) -> None:
    frame: Any = sys._getframe()
    instrument = Instrument(probe)
    instrument.start()
    instrument.step()
    instrument.stop()
    assert sys.gettrace() is None
    assert frame.f_trace is None
