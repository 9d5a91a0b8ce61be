"""Programs whose peaks somebody measured on a GPU, and published, on a virtual one."""

import json
from pathlib import Path

import pytest

from .planning import plan

SHARED = Path(__file__).parents[3] / "shared" / "memory"
pytestmark = pytest.mark.slow

CPU_PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

block = lambda: nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
model = nn.Sequential(nn.Linear(64, 256), block(), block(), block(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters())
data = DataLoader(TensorDataset(torch.randn(4096, 64), torch.randint(0, 10, (4096,))), batch_size=512)
for _ in range(9):
    for inputs, targets in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        kept = inputs[targets > 4]
"""


@pytest.mark.skipif(not SHARED.is_dir(), reason="the programs with published peaks are not here")
@pytest.mark.parametrize("name", ["01-mlp-sgd-fp32", "13-gpt-bf16-flash", "14-bert-mlm-adamw"])
def test_published_peaks_are_met(name: str, tmp_path: Path) -> None:
    truth = {entry["name"]: entry for entry in json.loads((SHARED / "truth.json").read_text())["entries"]}[
        name
    ]
    script = tmp_path / "train.py"
    script.write_text((SHARED / name / "train.py").read_text())
    peak = plan(tmp_path, str(script))["by_name"]["as it is"]
    for kind in ("allocated", "reserved"):
        published = truth["published"][kind]
        if published is not None:
            assert peak[kind]["num_bytes"] == pytest.approx(published, rel=0.03)


def test_a_program_that_never_asks_for_a_device_is_planned_too(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(CPU_PROGRAM)
    found = plan(tmp_path, str(script))
    peaks = found["by_name"]
    assert found["assumptions"] == []  # the mask over real labels is computed
    weights = 4 * (64 * 256 + 256 + 3 * (2 * 256 * 1024 + 1024 + 256) + 256 * 10 + 10)
    held = peaks["as it is"]["held"]["by_class"]
    assert held["parameters"] == pytest.approx(weights, rel=0.01)
    assert held["optimizer_state"] == pytest.approx(2 * weights, rel=0.01)

    def allocated(name: str) -> int:
        return int(peaks[name]["allocated"]["num_bytes"])

    assert allocated("checkpointing") < allocated("as it is") < allocated("batch x2")
    assert allocated("bf16 autocast") < allocated("as it is")
    assert allocated("accumulation 4") < allocated("accumulation 2") < allocated("as it is")
    assert found["largest_batches"][0]["of_now"] == 512
    assert not list(tmp_path.glob("*.so"))
