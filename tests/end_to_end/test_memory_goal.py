"""`hotloop tune --fit` on a real program: its structure; neither speed nor memory that is saved is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
while True:
    x, y = torch.randn(64, 64), torch.randint(0, 10, (64,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
LEAST = 4 * (64 * 512 + 512 * 512)
"""Bytes of its weights."""


def tune(folder: Path, budget: str) -> subprocess.CompletedProcess[str]:
    words = f"tune --fit 1MiB --budget {budget} --only autocast_bf16 --json out.json train.py".split()
    return subprocess.run(
        [sys.executable, "-m", "hotloop", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_peaks_are_counted_in_every_trial_and_a_limit_nobody_meets_is_one(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = tune(tmp_path, "40s")
    if done.returncode == 5:  # so busy a machine
        done = tune(tmp_path, "150s")
    assert done.returncode == 1, done.stderr[-3000:]
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["plan"]["steps"] == []
    assert told["aim"]["fit_bytes"] == 1 << 20
    goal = told["goal"]
    assert goal["fits"] is False
    assert goal["method"] == "counted tensors"
    original = next(point for point in goal["points"] if not point["names"])
    # Weights and gradients are there together; and nothing like the pages of torch itself.
    assert 2 * LEAST < original["peak_bytes"] < 8 * LEAST
    assert goal["smallest"]["peak_bytes"] <= original["peak_bytes"]
    assert "fits in 1.00 MiB" in done.stdout
    assert len(done.stdout.splitlines()) <= 30
