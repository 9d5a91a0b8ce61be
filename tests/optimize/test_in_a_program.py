"""The whole catalogue at once in real programs: each acts, and the program stays what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from hotloop.launch.environment import probed, with_changes
from hotloop.optimize import registry
from hotloop.probe.process.config import ProbeConfig

PLAN: dict[str, dict[str, Any]] = {
    "loader_workers": {"num_workers": 1},
    "loader_prefetch": {"prefetch_factor": 3},
    "persistent_workers": {},
    "autocast_bf16": {},
    "channels_last": {},
    "fused_optimizer": {},
    "debug_apis_off": {},
    "thread_count": {"num_threads": 2},
    "cpu_allocator": {"allocator": "glibc"},
    "pinned_memory": {},
    "tf32_matmul": {},
    "kernel_autotune": {},
}
NEED_A_DEVICE = {"pinned_memory", "tf32_matmul", "kernel_autotune"}

PLAIN = """
import copy, inspect, io, torch
from torch import nn
from torch.autograd import set_detect_anomaly
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(4 * 36, 2)
    def forward(self, images, scale=1.0):
        return self.head(self.body(images)) * scale

set_detect_anomaly(True)
torch.set_num_threads(1)
model = Net()
data = TensorDataset(torch.randn(40, 3, 8, 8), torch.randint(2, (40,)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
assert "fused" in inspect.signature(torch.optim.AdamW).parameters
for epoch in range(3):
    for images, labels in DataLoader(data, 4, shuffle=True):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        assert model(data.tensors[0]).dtype is torch.float32
    model.train()
assert list(inspect.signature(model.forward).parameters) == ["images", "scale"]
assert [name for name, _ in model.named_children()] == ["body", "head"]
file = io.BytesIO(); torch.save(model.state_dict(), file); file.seek(0)
torch.load(file, weights_only=True)
file = io.BytesIO(); torch.save(model, file); file.seek(0)
assert list(torch.load(file, weights_only=False).state_dict()) == list(copy.deepcopy(model).state_dict())
print("loss is finite:", bool(loss.isfinite()))
"""

FABRIC = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from lightning.fabric import Fabric

fabric = Fabric(accelerator="cpu", devices=1)
model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
model, optimizer = fabric.setup(model, optimizer)
data = TensorDataset(torch.arange(32.0).view(32, 1, 1, 1).expand(32, 1, 8, 8))
loader = fabric.setup_dataloaders(DataLoader(data, batch_size=4, shuffle=False))
for epoch in range(2):
    seen = []
    for (batch,) in loader:
        seen += batch[:, 0, 0, 0].tolist()
        fabric.backward(model(batch).sum())
        optimizer.step()
    assert seen == [float(n) for n in range(32)], seen
print("workers:", loader.num_workers, "batch:", loader.batch_size)
"""

ATTENTION = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)).bool())
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        att = q @ k.transpose(-2, -1) / 8**0.5
        att = att.masked_fill(~self.mask[: x.size(1), : x.size(1)], float("-inf"))
        return att.softmax(dim=-1) @ v

class Shown(Attention):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        self.weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.weights @ v

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.shown = Attention(), Shown()
    def forward(self, x):
        return x + self.attention(x) + self.shown(x)

model = nn.Sequential(*[Block() for _ in range(2)])
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    loss = model(torch.randn(4, 6, 8)).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
print("loss is finite:", bool(loss.isfinite()))
"""


def with_the_catalogue(program: str, folder: Path) -> tuple[str, dict[str, tuple[bool, str]], list[Any]]:
    """Run a program with every optimization on; return its output, the effects and what the probe noted."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(program))
    orders, environment = [], {key: value for key, value in os.environ.items() if "NUM_THREADS" not in key}
    for name, params in PLAN.items():
        optimization = registry.get(name)
        cls = type(optimization)
        orders.append({"name": name, "module": cls.__module__, "cls": cls.__name__, "params": params})
        environment = with_changes(environment, optimization.environment(params))
    config = folder / "probe.json"
    ProbeConfig(folder=str(folder), activations=tuple(orders)).save(config)
    done = subprocess.run(
        [sys.executable, str(script)],
        env=probed(environment, config),
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    facts = [json.loads(path.read_text()) for path in folder.glob("process-*.json")]
    (trained,) = [process for process in facts if process["steps"]]
    effects = {effect["name"]: (effect["on"], effect["evidence"]) for effect in trained["effects"]}
    return done.stdout, effects, trained["notes"]


def test_everything_acts_in_a_plain_loop(tmp_path: Path) -> None:
    output, effects, notes = with_the_catalogue(PLAIN, tmp_path)
    assert output == "loss is finite: True\n"
    assert notes == []
    assert set(effects) == set(PLAN)
    assert {name for name, (on, _) in effects.items() if not on} == NEED_A_DEVICE, effects
    assert "kept against 1 calls" in effects["thread_count"][1]


@pytest.mark.slow
def test_what_is_written_in_the_model_is_exchanged_or_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys.modules[__name__], "PLAN", {"flash_attention": {}, "zero_grad_none": {}, "huge_pages": {}}
    )
    output, effects, notes = with_the_catalogue(ATTENTION, tmp_path)
    assert output == "loss is finite: True\n"
    assert notes == []
    on, evidence = effects["flash_attention"]
    assert on, evidence
    assert evidence.startswith("Attention.forward (line 14): outputs and gradients within")
    assert "10 calls counted" in evidence
    assert effects["zero_grad_none"] == (True, "6 calls let the gradients of 8 parameters go"), effects


@pytest.mark.slow
def test_compiled_code_runs_under_autocast_in_another_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"autocast_bf16": {}, "channels_last": {}, "compile": {"mode": "default"}}
    monkeypatch.setattr(sys.modules[__name__], "PLAN", plan)
    output, effects, notes = with_the_catalogue(PLAIN, tmp_path)
    assert output == "loss is finite: True\n"
    assert notes == []
    assert all(on for on, _ in effects.values()), effects
    assert "0 graph breaks" in effects["compile"][1]


TRANSFORMS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Normalize(nn.Module):  # as torchvision's transforms are
    def forward(self, image):
        return image * 2 - 1

class Data(Dataset):
    normalize = Normalize()
    def __len__(self):
        return 512
    def __getitem__(self, at):
        return self.normalize(torch.full((8,), at / 512)), at % 2

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for images, labels in DataLoader(Data(), 64):
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss is finite:", bool(loss.isfinite()))
"""


@pytest.mark.slow
def test_float16_scales_inside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PLAN", {"autocast_fp16": {}})
    output, effects, notes = with_the_catalogue(PLAIN, tmp_path)
    assert output == "loss is finite: True\n"
    assert notes == []
    on, evidence = effects["autocast_fp16"]
    assert on, evidence
    assert "cpu autocast to torch.float16 inside the forward" in evidence
    assert "0 of 30 steps left out" in evidence


@pytest.mark.slow
def test_a_model_compiles_behind_calls_of_transforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are modules too, and ended the search for the model before its first call."""
    monkeypatch.setattr(sys.modules[__name__], "PLAN", {"compile": {"mode": "default"}})
    output, effects, notes = with_the_catalogue(TRANSFORMS, tmp_path)
    assert output == "loss is finite: True\n"
    assert notes == []
    assert effects["compile"][0], effects


@pytest.mark.slow
def test_fabric_s_second_construction_of_a_loader_gives_the_same_batches(tmp_path: Path) -> None:
    output, effects, notes = with_the_catalogue(FABRIC, tmp_path)
    assert output.endswith("workers: 1 batch: 4\n")
    assert notes == []
    assert effects["loader_workers"][0], effects
