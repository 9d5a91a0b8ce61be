"""One more run of real programs: what it leaves, and what it says where it cannot measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.app import run

pytestmark = pytest.mark.slow

SLOW_LOADER = """
import time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.zeros(64)

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
while True:
    for batch in DataLoader(Slow(), batch_size=4):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""
NO_LOADER = """
import torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.Adam(model.parameters())
while True:
    optimizer.zero_grad()
    model(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()
"""


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str, *options: str) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(program)
    before = sorted(path.name for path in folder.iterdir())
    run(
        [
            "diagnose",
            "--quiet",
            "--no-deep",
            "--steps",
            "20",
            "--seconds",
            "240",
            *options,
            "--json",
            "found.json",
            "train.py",
        ]
    )
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, ".hotloop", "found.json"])
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


def test_a_slow_loader_has_both_ceilings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(tmp_path, monkeypatch, SLOW_LOADER)
    limits = found["observation"]["ceilings"]
    # Four samples take 40 ms of sleep, however busy the machine is.
    assert limits["perfect_input"]["ratio"] > 1
    assert limits["num_workers"] == 0
    assert limits["loader_samples_per_s"]["0"] < 102
    assert limits["loader_samples_per_s"]["1"] < 102
    told = {one["name"] for one in found["observation"]["predictions"]}
    assert {"loader_workers", "fused_optimizer"} <= told
    assert "compute alone would run at" in found["bottleneck"]["sentence"]


def test_without_a_loader_there_are_predictions_and_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = said(tmp_path, monkeypatch, NO_LOADER)
    assert found["observation"]["ceilings"] is None
    gaps = {gap["what"]: gap["why"] for gap in found["observation"]["coverage"]}
    assert "no DataLoader" in gaps["ceilings"]
    assert "fused_optimizer" in {one["name"] for one in found["observation"]["predictions"]}


def test_nobody_has_to_wait_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(tmp_path, monkeypatch, NO_LOADER, "--no-ceilings")
    assert found["observation"]["predictions"] == []
    gaps = {gap["what"]: gap["why"] for gap in found["observation"]["coverage"]}
    assert gaps["ceilings and predictions"] == "not asked for (--no-ceilings)"
