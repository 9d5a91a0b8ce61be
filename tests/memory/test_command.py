"""The command itself, from its words to its screen: without a program, and with a small one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from click.testing import CliRunner

from hotloop.cli import memory
from hotloop.memory.virtual_report import VirtualPeak, VirtualReport
from hotloop.memory.virtual_run import plan_virtually

from ..cli.commands import hotloop

SMALL = """
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(256, 256)
optimizer = torch.optim.Adam(model.parameters())
data = DataLoader(TensorDataset(torch.randn(512, 256), torch.randn(512, 256)), batch_size=64)
for _ in range(3):
    for inputs, targets in data:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
"""


def test_every_option_reaches_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    peak = VirtualPeak(name="as it is", peak_allocated_bytes=1 << 30, peak_reserved_bytes=2 << 30)
    run = create_autospec(plan_virtually, return_value=VirtualReport(configurations=(peak,)))
    monkeypatch.setattr(memory, "plan_virtually", run)
    words = ["--device", "T4", "--device", "24GB", "--seconds", "7", "--json", "plan.json", "--network"]
    done = CliRunner().invoke(memory.command, ["plan", *words, "train.py"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "hotloop tune --goal memory train.py" in " ".join(done.output.split()), "what to type next"
    assert run.call_args.kwargs["limit_s"] == 7
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert {(one["device"], one["fits"]) for one in plan["peaks"]} == {("T4", "yes"), ("24GB", "yes")}


def test_a_program_that_does_not_train_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(4)")
    done = hotloop("memory", "plan", "--device", "T4", "train.py", cwd=tmp_path)
    assert done.returncode != 0
    assert "after 0 training steps with exit code 4" in done.stderr


def test_a_small_program_is_planned(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SMALL)
    done = hotloop("memory", "plan", "--device", "T4", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "as it is" in done.stdout
    assert "verified on the virtual GPU" in done.stdout
    assert re.search(r"^reached +in the optimizer of step 1", done.stdout, re.MULTILINE)
