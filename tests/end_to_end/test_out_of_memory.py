"""A real program under a real limit: the screen, the session, the exit code."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ..tune.plans import WORKERS, write_plan

LIMIT_BYTES = 3 << 30
PROGRAM = """
import torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 512), nn.Tanh())
optimizer = torch.optim.Adam(model.parameters())
outputs = []
for step in range(1000):
    x = torch.rand(60_000, 512)
    outputs.append(model(x))
    loss = outputs[-1].pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
"""


def _hotloop(folder: Path, *words: str, limited: bool) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))

    return subprocess.run(
        [sys.executable, "-m", "hotloop", *words], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1"}, preexec_fn=limit if limited else None,
    )  # fmt: skip


@pytest.mark.slow
def test_a_program_that_runs_out_of_memory_is_answered_and_kept(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    ended = _hotloop(
        tmp_path, "observe", "--full", "--json", "seen.json", sys.executable, "train.py", limited=True
    )
    assert ended.returncode == 3, ended.stderr
    assert "Your program ran out of memory: it asked for 117 MiB at train.py:" in ended.stdout
    assert "ulimit -v" in ended.stdout
    assert "detach" in ended.stdout
    shown = _hotloop(tmp_path, "report", limited=False)
    assert "ran out of memory" in shown.stdout
    if (tmp_path / "seen.json").exists():
        found = json.loads((tmp_path / "seen.json").read_text())["out_of_memory"]
        assert found["followed"]
        assert found["by_class"]["earlier_steps"] > found["by_class"]["activations"]
        assert "detach" in found["remedies"][0]["change"]


@pytest.mark.slow
def test_a_run_with_a_plan_that_runs_out_of_memory_says_what_held_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    write_plan(tmp_path, script, WORKERS)
    ended = _hotloop(tmp_path, "run", sys.executable, "train.py", limited=True)
    assert ended.returncode == 1  # the program's own
    assert ended.stdout == ""
    before, _, told = ended.stderr.partition(
        "Your program ran out of memory: it asked for 117 MiB at train.py:"
    )
    assert "Traceback" in before
    assert "ulimit -v" in told
    assert "outputs" in told
    shown = _hotloop(tmp_path, "report", limited=False)
    assert "ran out of memory" in shown.stdout
