"""`hotloop diagnose` of programs that end within seconds: nothing is missing that further runs can give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.observe.profile.windows import ALL

from ..observe.conftest import hotloop

pytestmark = pytest.mark.slow

_TWENTY_STEPS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(5120, 256), torch.randint(0, 10, (5120,))), batch_size=256)
for inputs, labels in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.item()
    loss.backward()
    optimizer.step()
"""
_TWENTY_STEPS_LINE = 12
"""Of its `.item()`."""

_EPOCHS = """
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)

class Slow(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, index):
        total = 0.0
        for value in range(60000):
            total += value
        return torch.full((64,), total), index % 4

model = nn.Linear(64, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train, held_out = DataLoader(Slow(), batch_size=8), DataLoader(Slow(), batch_size=8)
for epoch in range(4):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for inputs, labels in held_out:
            model(inputs)
"""
_EPOCHS_LINES = (14, 15)
"""Of the loop in its data set."""

_LONG_TAIL = """
import time
import torch
from torch import nn
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10))
optimizer = torch.optim.Adam(model.parameters())
ends = time.monotonic() + 2.0
while time.monotonic() < ends:
    optimizer.zero_grad()
    model(torch.randn(64, 512)).square().mean().backward()
    optimizer.step()
model.eval()
ends = time.monotonic() + 600.0
while time.monotonic() < ends:
    with torch.no_grad():
        model(torch.randn(64, 512))
    time.sleep(0.05)
"""

_BUSY = ("--seconds", "240")
"""A budget for a machine on which everything takes several times as long; the programs end long before."""
_FROM_THE_INSTRUMENTS = (
    "--no-deep",
    "host's stacks",
    "operators of a step",
    "FLOPs of a step",
    "reads of the loading",
)
"""Of what a rule needs, where it abstains for lack of what the instruments see."""


def _diagnosed(folder: Path, program: str, *options: str) -> dict[str, Any]:
    """Return the diagnosis of a program, whose output and files the test shares."""
    (folder / "train.py").write_text(program)
    done = hotloop(folder, "diagnose", "--quiet", *options, "--json", "found.json", "train.py")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


def _told(found: dict[str, Any]) -> list[str]:
    """Return all that the runs told, in their order."""
    return [name for run in found["observation"]["runs"] for name in run["told"]]


def _lacking(found: dict[str, Any]) -> list[str]:
    """Return the rules that could not judge for lack of what further runs can give."""
    return [
        f"{one['code']}: {one['needs']}"
        for one in found["abstained"]
        if any(words in one["needs"] for words in _FROM_THE_INSTRUMENTS)
    ]


def _lines(found: dict[str, Any]) -> dict[str, list[int]]:
    """Return the lines that are named, by code."""
    named: dict[str, list[int]] = {}
    for finding in found["findings"]:
        if finding["line"] is not None:
            named.setdefault(finding["code"], []).append(finding["line"])
    return named


def test_twenty_steps_in_all(tmp_path: Path) -> None:
    found = _diagnosed(tmp_path, _TWENTY_STEPS, *_BUSY, "--no-ceilings")
    runs = found["observation"]["runs"]
    assert found["observation"]["exit_code"] == 0
    assert runs[0]["told"] == ["step"]
    assert runs[0]["num_steps"] == 20
    assert {run["why"] for run in runs[1:]} == {"the first one ended after 20 steps"}
    assert sorted(_told(found)) == sorted(("step", *ALL))
    assert _lacking(found) == []
    sites = found["observation"]["deep"]["call_sites"]["sites"]
    assert _TWENTY_STEPS_LINE in [site["line"] for site in sites]
    said = [gap["what"] for gap in found["observation"]["coverage"]]
    assert sum("in the run of the steps" in what for what in said) == len(runs) - 1


def test_short_epochs_with_evaluation_between_them(tmp_path: Path) -> None:
    found = _diagnosed(tmp_path, _EPOCHS, *_BUSY, "--no-ceilings")
    assert set(_told(found)) == {"step", *ALL}
    assert _lacking(found) == []
    assert found["bottleneck"]["kind"] in ("input", "evaluation")
    assert set(_lines(found)["slow-dataset-line"]) & set(_EPOCHS_LINES)


def test_a_training_of_two_seconds_before_an_evaluation_without_end(tmp_path: Path) -> None:
    found = _diagnosed(tmp_path, _LONG_TAIL, "--no-ceilings")
    observation = found["observation"]
    assert observation["exit_code"] is None, "it was ended, in its evaluation"
    missing = {*ALL} - set(_told(found))
    no_time = [gap["what"] for gap in observation["coverage"] if "no time left (--seconds 90)" in gap["why"]]
    assert all(any(name in what for what in no_time) for name in missing)


def test_a_start_longer_than_the_budget(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time, torch\ntime.sleep(600)\n")
    done = hotloop(tmp_path, "diagnose", "--quiet", "--seconds", "8", "train.py")
    assert done.returncode == 2
    assert "--seconds 16" in done.stderr
