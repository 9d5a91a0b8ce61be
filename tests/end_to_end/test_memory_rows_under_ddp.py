"""Recomputed blocks train bit for bit the same under DistributedDataParallel; micro-batches leave it alone."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from hotloop.model.observation import SCHEMA
from hotloop.model.tuning import Compatibility, Plan, PlanStep
from hotloop.tune.plan.plan_file import to_toml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, gelu

dist.init_process_group("gloo")
torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(16, 64), nn.Linear(64, 16), nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(gelu(self.up(x))))


model = nn.Sequential(nn.Linear(8, 16), nn.Sequential(*[Block() for _ in range(4)]), nn.Linear(16, 10))
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
generator = torch.Generator().manual_seed(dist.get_rank())
for _ in range(6):
    optimizer.zero_grad()
    with model.no_sync():
        x, y = torch.randn(8, 8, generator=generator), torch.randint(10, (8,), generator=generator)
        (cross_entropy(model(x), y) / 2).backward()
    x, y = torch.randn(8, 8, generator=generator), torch.randint(10, (8,), generator=generator)
    loss = cross_entropy(model(x), y) / 2
    loss.backward()
    optimizer.step()
total = sum(p.double().abs().sum() for p in model.parameters())
print(f"\\nRESULT {dist.get_rank()} {loss.item()!r} {total.item()!r}", flush=True)
dist.destroy_process_group()
"""


def plan_file(folder: Path, name: str, params: dict[str, Any]) -> Path:
    """A plan of one step."""
    fit = Compatibility(
        machine={}, torch_version=version("torch"), script=None, script_sha256=None, command=("python",)
    )
    step = PlanStep(name=name, params=params, ratio=1.0, low=1.0, high=1.0)
    path = folder / "plan.toml"
    path.write_text(to_toml(Plan(steps=(step,), speedup=None, parity=None, fit=fit, schema=SCHEMA)))
    return path


def results(folder: Path, name: str = "", **params: Any) -> set[str]:
    """The last loss and the parameters of both ranks, with a plan of one step."""
    run = [sys.executable, "-m", "hotloop", "run", "--force", "--plan"]
    begin = [*run, str(plan_file(folder, name, params))] if name else []
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*begin, *launcher, "train.py"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = {line for line in done.stdout.splitlines() if line.startswith("RESULT")}
    assert len(told) == 2, done.stdout[-1000:]
    return told


def test_blocks_are_recomputed_and_micro_batches_are_not_made(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    plain = results(tmp_path)
    assert results(tmp_path, "activation_checkpointing", blocks=0.5) == plain
    assert results(tmp_path, "gradient_accumulation", micro_batches=2) == plain
