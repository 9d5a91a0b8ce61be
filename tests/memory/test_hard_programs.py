"""Programs whose peak is not where three steps of training look, and programs that ask for values."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from ..cli.commands import hotloop
from .planning import plan

pytestmark = pytest.mark.slow
MIB = 1 << 20

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.Adam(model.parameters())

def train(rows):
    loss = model(torch.randn(rows, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""
LEAKS = """
kept = []
for step in range(60):
    train(64)
    kept.append(model(torch.randn(512, 256, device="cuda")))
"""
EVALUATES = """
for epoch in range(2):
    for step in range(8):
        train(64)
    with torch.no_grad():
        held_out = model(torch.randn(65536, 256, device="cuda")).square().mean().item()
    print(f"{held_out:.3f}")
"""
FIRST_STEP = """
for step in range(30):
    train(32768 if step == 0 else 64)
"""
LONGEST_LATE = """
for step in range(30):
    train(20000 if step == 20 else 64 + step)
"""
LEFT_ON_CPU = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

words = torch.randint(0, 50, (4096, 64))
model = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(1024, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch, in DataLoader(TensorDataset(words), 128):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FLAT_LABELS = """
import torch
from torch import nn

words = torch.randint(0, 50, (10_000,))
model = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 50))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    at = torch.randint(0, 9_000, (16,))
    x, y = (torch.stack([words[i + more : i + more + 128] for i in at]) for more in (0, 1))
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BY_HAND = """
import torch
weight = torch.randn(512, 512, device="cuda", requires_grad=True)
for step in range(30):
    (torch.randn(64, 512, device="cuda") @ weight).square().mean().backward()
    with torch.no_grad():
        weight -= 0.01 * weight.grad
        weight.grad = None
"""
SELECTS = """
for step in range(8):
    out = model(torch.randn(64, 256, device="cuda"))
    chosen = out[out > 0.5]
    assert torch.isfinite(chosen).all()
    if torch.isnan(chosen).any():
        raise SystemExit("nan")
    loss = chosen.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scale = torch.tensor(0.5, device="cuda") * loss
    print(f"{scale:.3f}", chosen.shape, torch.nonzero(out > 0).shape)
    torch.save(model.state_dict(), "weights.pt")
    model.load_state_dict(torch.load("weights.pt", map_location="cuda"))
"""
READS_MEMORY = """
train(64)
loss = train(64)
values = model(torch.randn(64, 256, device="cuda")).detach().numpy()
"""
HELD_STATES = 2 * 4 * (256 * 1024 + 1024 + 1024 * 256 + 256)


def written(folder: Path, body: str) -> Path:
    script = folder / "train.py"
    script.write_text(HEAD + body)
    return script


def allocated(found: dict[str, object]) -> int:
    return int(found["by_name"]["as it is"]["allocated"]["num_bytes"])  # type: ignore[index]


def test_a_leak_is_seen_with_its_line_and_when_it_fills_the_device(tmp_path: Path) -> None:
    found = plan(tmp_path, str(written(tmp_path, LEAKS)))
    # Two inputs and outputs of 512 x 256 and a hidden one of 512 x 1024 in fp32, kept each step by the graph.
    assert found["later"]["grows_bytes"] == pytest.approx(3 * MIB, rel=0.1)
    assert found["later"]["growing_line"].endswith(":19")
    assert found["by_name"]["as it is"]["fits"] == "unsure"
    assert "full after steps: A100 40GB about 1" in " ".join(found["screen"].split())


@pytest.mark.parametrize(
    ("body", "rows", "phase"),
    [(EVALUATES, 65536, "between"), (FIRST_STEP, 32768, "backward"), (LONGEST_LATE, 20000, "backward")],
)
def test_a_peak_outside_the_first_steps_counts(tmp_path: Path, body: str, rows: int, phase: str) -> None:
    found = plan(tmp_path, str(written(tmp_path, body)))
    hidden = rows * 1024 * 4
    assert allocated(found) > 1.2 * hidden
    assert found["later"]["phase"] == phase
    assert found["later"]["grows_bytes"] is None


def test_a_program_without_an_optimizer_is_followed_by_its_backwards(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BY_HAND)
    found = plan(tmp_path, str(script))
    assert found["later"]["num_steps"] == 30
    assert found["by_name"]["8-bit optimizer"]["missing"] == "the optimizer keeps no state"


def test_values_that_decide_are_assumed_and_said(tmp_path: Path) -> None:
    found = plan(tmp_path, str(written(tmp_path, SELECTS)))
    assert "a mask is taken to select everything" in found["assumptions"]
    assert found["by_name"]["as it is"]["held"]["by_class"]["optimizer_state"] == pytest.approx(
        HELD_STATES, rel=0.01
    )


def test_what_a_virtual_gpu_cannot_do_is_an_error_with_the_line(tmp_path: Path) -> None:
    done = hotloop(
        "memory", "plan", "--device", "T4", str(written(tmp_path, READS_MEMORY)), cwd=tmp_path, limit_s=280
    )
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "after 2 training steps in train.py:18" in said
    assert "leave it out for the plan" in said


def test_whole_numbers_of_a_loader_are_let_go_with_their_batch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEFT_ON_CPU)
    found = plan(tmp_path, "train.py")
    assert found["later"]["grows_bytes"] is None
    assert found["by_name"]["as it is"]["held"]["by_class"].get("inputs", 0) < 2 * 128 * 64 * 8


def test_labels_that_are_flattened_before_the_loss_have_the_batch_that_is_tried(tmp_path: Path) -> None:
    """A language model whose batches are made by hand: torch compares the number of labels before anything runs."""
    (tmp_path / "train.py").write_text(FLAT_LABELS)
    found = plan(tmp_path, "train.py")
    half, base, double = (
        found["by_name"][name]["allocated"]["num_bytes"]
        for name in ("accumulation 2", "as it is", "batch x2")
    )
    assert half < 0.9 * base  # eight MiB are a workspace
    assert double > 1.3 * base


STAGES = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        convolution = lambda: nn.Conv2d(width, width, 3, padding=1)
        self.body = nn.Sequential(convolution(), nn.BatchNorm2d(width), nn.ReLU(), convolution())

    def forward(self, x):
        return x + self.body(x)

stage = lambda before, width: [nn.Conv2d(before, width, 3, 2, 1), nn.Sequential(*[Block(width) for _ in range(4)])]
model = nn.Sequential(*stage(3, 32), *stage(32, 64), *stage(64, 128)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images = torch.randn(32, 3, 64, 64).cuda()
for step in range(60):
    loss = model(images).square().mean()
    images = torch.randn(32, 3, 64, 64).cuda()  # the next batch, while this one is alive
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_batch_that_is_fetched_ahead_and_stages_of_blocks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STAGES)
    found = plan(tmp_path, "train.py")
    base, half, quarter, recomputed = (
        found["by_name"][name]["allocated"]["num_bytes"]
        for name in ("as it is", "accumulation 2", "accumulation 4", "checkpointing")
    )
    assert half < 0.75 * base
    assert quarter < 0.75 * half
    assert recomputed < 0.6 * base


LOADS = """
optimizer.zero_grad()
model.load_state_dict(torch.load("before.pt", map_location="cuda"))
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).cuda()
padding = torch.zeros(8, 16, dtype=torch.bool)
padding[:, 12:] = True
for epoch in range(9):
    for step in range(6):
        train(64)
    encoder.eval()
    with torch.no_grad():
        encoder(torch.randn(8, 16, 64).cuda(), src_key_padding_mask=padding.cuda())
"""


def test_a_checkpoint_for_the_device_is_loaded_and_padding_needs_no_nested_tensors(tmp_path: Path) -> None:
    weights = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
    torch.save(weights.state_dict(), tmp_path / "before.pt")
    found = plan(tmp_path, str(written(tmp_path, LOADS)))
    assert found["later"]["failure"] is None
    assert all("fails" not in (peak["missing"] or "") for peak in found["peaks"])


AUTOCAST = """
import contextlib, sys
import torch
from torch import nn

model = nn.Sequential(nn.Embedding(8000, 64), nn.Linear(64, 8000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
half = sys.argv[1] == "half"
for step in range(40):
    words = torch.randint(0, 8000, (4, 512)).cuda()
    with torch.autocast("cuda", torch.bfloat16) if half else contextlib.nullcontext():
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_autocast_has_the_loss_in_it_as_a_program_would_write_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(AUTOCAST)
    planned, own = (plan(tmp_path, "train.py", word)["by_name"] for word in ("full", "half"))
    assert planned["bf16 autocast"]["allocated"]["num_bytes"] == pytest.approx(
        own["as it is"]["allocated"]["num_bytes"], rel=0.02
    )


LBFGS = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).cuda()
optimizer = torch.optim.LBFGS(model.parameters())
x = torch.randn(64, 256).cuda()

def closure():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return loss

for step in range(8):
    optimizer.step(closure)
"""


def test_a_tolerance_is_not_taken_to_be_reached(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LBFGS)
    found = plan(tmp_path, "train.py")
    weights = 4 * (256 * 1024 + 1024 + 1024 + 1)
    assert allocated(found) > 20 * weights  # the history of LBFGS
    assert "numbers computed on the device are taken not to be below a threshold" in found["assumptions"]


RANKS = """
import os
import torch
import torch.distributed as dist
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList(Block() for _ in range(4)), nn.Linear(256, 10)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(BACKEND)
model = WRAPPED
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    loss = model(torch.randn(64, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    dist.all_reduce(loss.detach())
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, os.uname().nodename)
dist.destroy_process_group()
"""
FSDP2 = """
from torch.distributed.fsdp import fully_shard
def shard(model):
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)
"""
FSDP = "from torch.distributed.fsdp import FullyShardedDataParallel\n"
DDP = "from torch.nn.parallel import DistributedDataParallel\n"
PARAMETERS = 4 * (4 * (256 * 1024 * 2 + 1024 + 256) + 256 * 10 + 10)
"""Bytes."""


@pytest.mark.parametrize(
    ("head", "wrapped", "backend", "shards"),
    [
        (FSDP2, "shard(Net().cuda())", "nccl", 2),
        (FSDP2, "shard(Net().to('meta')).to_empty(device='cuda')", "nccl", 2),
        (FSDP, "FullyShardedDataParallel(Net(), device_id=torch.cuda.current_device())", "nccl", 2),
        (DDP, "DistributedDataParallel(Net().cuda(), device_ids=[0])", "gloo", 1),
    ],
    ids=["fsdp2", "fsdp2-meta", "fsdp", "ddp"],
)
def test_a_rank_has_its_shards(tmp_path: Path, head: str, wrapped: str, backend: str, shards: int) -> None:
    program = head + RANKS.replace("WRAPPED", wrapped).replace("BACKEND", repr(backend))
    (tmp_path / "train.py").write_text(program)
    found = plan(tmp_path, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py")
    held = found["by_name"]["as it is"]["held"]["by_class"]
    assert held["parameters"] == pytest.approx(PARAMETERS / shards, rel=0.02)
    assert held["optimizer_state"] == pytest.approx(2 * PARAMETERS / shards, rel=0.02)
    left_out = found["by_name"]["FSDP2 (ZeRO-3) over 8"]["missing"]
    assert (left_out == "the program shards its model itself") == (shards > 1)


COMPARES = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(64, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = DataLoader(TensorDataset(torch.randn(512, 64), torch.randint(0, 10, (512,))), 128)

@torch.inference_mode()
def accuracy():
    outputs = np.concatenate([model(x.to("cuda")).argmax(1).cpu().numpy() for x, _ in data])
    return (outputs == np.concatenate([y.numpy() for _, y in data])).mean()

accuracy()
for epoch in range(9):
    losses = []
    for x, y in data:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print(torch.tensor(losses).mean(), accuracy())
"""


def test_an_evaluation_keeps_its_batches_and_gives_its_values(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(COMPARES)
    found = plan(tmp_path, "train.py")
    assert found["later"]["failure"] is None
    for name in ("accumulation 4", "batch x2"):
        assert found["by_name"][name]["missing"] is None
