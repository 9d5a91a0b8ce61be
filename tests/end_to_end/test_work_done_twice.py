"""`hotloop diagnose` of a program that does its work twice in several ways: each is named by its line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..observe.conftest import hotloop

pytestmark = pytest.mark.slow

_PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


def positions(length, width):
    rows = [torch.exp(torch.arange(width) / width) * place for place in range(length)]
    return torch.stack(rows).sin()


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(200_000, 32)  # table
        self.key, self.query = nn.Linear(32, 256), nn.Linear(32, 256)
        self.near, self.far = nn.Linear(256, 8), nn.Linear(256, 8)
        self.norm = nn.LayerNorm(256)

    def forward(self, ids):
        x = self.words(ids)
        x = x + positions(400, 32)[: ids.shape[1]]  # positions
        state = self.query(x).mean(1)
        for _ in range(4):
            keys = self.key(x).relu()  # key
            state = self.norm(state + (keys * state[:, None]).mean(1))
        return self.near(state), self.far(state)


def keep(module, inputs, output):
    module.seen = output[0].detach().square().mean()


student = Student()
teacher = nn.Sequential(nn.Embedding(500, 64), nn.Flatten(), nn.Linear(16 * 64, 512), nn.ReLU(), nn.Linear(512, 8))
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
step = 0
while True:
    ids = torch.randint(500, (64, 16))
    student.register_forward_hook(keep)  # hook
    near, far = student(ids)
    wanted = teacher(ids)  # teacher
    optimizer.zero_grad()
    F.mse_loss(near, wanted.detach()).backward(retain_graph=True)
    F.mse_loss(far, wanted).backward()  # backward
    optimizer.step()
    step += 1
"""
_WHERE = {
    "dense-embedding-gradients": "table",
    "constant-computed-each-step": "positions",
    "repeated-computation": "key",
    "hooks-pile-up": "hook",
    "gradients-without-optimizer": "teacher",
    "repeated-backward": "backward",
}


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What one run of it tells."""
    folder = tmp_path_factory.mktemp("twice")
    (folder / "train.py").write_text(_PROGRAM)
    done = hotloop(
        folder, "diagnose", "--quiet", "--no-ceilings", "--seconds", "150", "--json", "found.json", "train.py"
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads((folder / "found.json").read_text())["findings"]
    return found


@pytest.mark.parametrize(("code", "mark"), _WHERE.items(), ids=_WHERE)
def test_each_is_named_by_its_line(findings: list[dict[str, Any]], code: str, mark: str) -> None:
    lines = {line.partition("# ")[2]: number for number, line in enumerate(_PROGRAM.splitlines(), start=1)}
    named = [finding["line"] for finding in findings if finding["code"] == code]
    assert lines[mark] in named
