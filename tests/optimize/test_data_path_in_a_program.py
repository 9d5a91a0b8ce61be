"""The rows of the data path in an unmodified program: each acts, and the program learns exactly what it learned."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import test_in_a_program

ROWS = """
import hashlib, random, sys
import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
random.seed(0), torch.manual_seed(0), torch.set_num_threads(1)

class Rows(Dataset):
    def __init__(self):
        self.x = np.random.default_rng(0).standard_normal((96, 8)).astype(np.float32)
        self.y = np.arange(96)
    def __len__(self):
        return 96
    def __getitem__(self, index):
        return self.x[index] * 2, self.y[index]
"""
FILES = """
import hashlib, random, sys
from pathlib import Path
import numpy as np, torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
random.seed(0), torch.manual_seed(0), torch.set_num_threads(1)
folder = Path("images")
if not folder.exists():
    folder.mkdir()
    for number in range(48):
        pixels = np.random.default_rng(number).integers(0, 255, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((24, 24)).save(folder / f"{number}.jpg")

class Rows(Dataset):
    def __len__(self):
        return 48
    def __getitem__(self, index):
        image = Image.open(folder / f"{index}.jpg").convert("L").resize((4, 2))
        return np.array(image, dtype=np.float32).flatten() / 255, index
"""
LOOP = """
model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seen = hashlib.sha256()
for epoch in range(3):
    for number, (x, index) in enumerate(DataLoader(Rows(), batch_size=4, shuffle=True)):
        seen.update(x.numpy().tobytes() + index.numpy().tobytes())
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if epoch == 1 and number == 9:
            break
seen.update(b"".join(weight.detach().numpy().tobytes() for weight in model.parameters()))
print(seen.hexdigest(), random.random(), torch.rand(1).item())
"""


def plain(program: str, folder: Path) -> str:
    """Return what a program prints by itself."""
    (folder / "train.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("program", "plan"),
    [
        (ROWS + LOOP, {"vectorized_fetch": {}, "device_prefetch": {}}),
        (FILES + LOOP, {"ram_disk": {}, "faster_decode": {"decoder": "simplejpeg"}, "device_prefetch": {}}),
        (FILES + LOOP, {"remote_loading": {}, "device_prefetch": {}}),
    ],
    ids=["arrays", "files", "remote files"],
)
def test_it_acts_and_learns_exactly_what_it_learned(
    program: str, plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = plain(program, tmp_path)
    for copied in {"ram_disk", "remote_loading"} & plan.keys():
        plan = {**plan, copied: {"folder": str(tmp_path / "images")}}
    monkeypatch.setattr(test_in_a_program, "PLAN", plan)
    output, effects, notes = test_in_a_program.with_the_catalogue(program, tmp_path)
    assert output == expected
    assert notes == []
    assert all(on for on, _ in effects.values()), effects
    assert set(effects) == set(plan)
