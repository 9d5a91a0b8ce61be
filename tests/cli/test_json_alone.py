"""`--json -`: standard output has the result alone, whatever else is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..trace.example import example_trace
from .commands import hotloop

NOISY = """\
import torch
print("my own words")
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    loss = model(torch.randn(4, 8)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_the_programs_words_and_the_screen_go_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NOISY)
    done = hotloop("observe", "--no-deep", "--steps", "5", "--json", "-", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"]["num"] >= 5
    assert "my own words" in done.stderr
    assert "mean step" in done.stderr
    for words in (["report", "--json"], ["report", "--perfetto"], ["report", "--html"]):
        shown = hotloop(*words, "-", cwd=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert "program" in shown.stderr, "the verdict in a sentence"
        assert "wrote -" not in shown.stderr
        if words[1] == "--html":
            assert shown.stdout.startswith("<!doctype html>")
            assert shown.stdout.rstrip().endswith("</html>")
        else:
            json.loads(shown.stdout)


def test_a_result_without_a_program(tmp_path: Path) -> None:
    (tmp_path / ".hotloop").mkdir()
    done = hotloop("sessions", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


def test_a_trace_that_is_converted_into_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text(json.dumps(example_trace()))
    done = hotloop("trace", "convert", "--to", "perfetto", "small.json", "/dev/stdout", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["traceEvents"]
