"""Runs of `hotloop observe` on small real programs, in a folder of their own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TINY = """
import sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,))), batch_size=16)
held_out = DataLoader(TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,))), batch_size=8)
limit = int(sys.argv[1]) if len(sys.argv) > 1 else 10**9
steps = 0
while steps < limit:
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps == limit:
            break
    with torch.no_grad():
        for inputs, labels in held_out:
            model(inputs)
print("done after", steps)
"""


@dataclass(frozen=True)
class Observed:
    """What one run of the command left."""

    code: int
    out: str
    err: str
    seen: dict[str, Any]
    """The Observation's JSON; empty where none was written."""
    folder: Path


Observe = Callable[..., Observed]


def tree_hash(folder: Path) -> str:
    """Return a digest of every name, mode and byte below a folder, `.hotloop` left out."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if ".hotloop" in path.parts:
            continue
        digest.update(f"{path.relative_to(folder)} {path.lstat().st_mode}".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def hotloop(
    folder: Path, *words: str, stdin: str = "", variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `hotloop` in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "hotloop", *words],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )


def run_observe(
    folder: Path,
    json_folder: Path,
    program: str,
    *options: str,
    command: tuple[str, ...] = ("train.py",),
    stdin: str = "",
    variables: dict[str, str] | None = None,
    deep: bool = False,
) -> Observed:
    """Observe a program that is written to `train.py` of the folder; deep windows, which take seconds, where asked."""
    (folder / "train.py").write_text(program)
    seen = json_folder / "observation.json"
    done = hotloop(
        folder,
        "observe",
        *options,
        *(() if deep else ("--no-deep",)),
        "--json",
        str(seen),
        *command,
        stdin=stdin,
        variables=variables,
    )
    content = json.loads(seen.read_text()) if seen.exists() else {}
    return Observed(done.returncode, done.stdout, done.stderr, content, folder)


@pytest.fixture
def observe(tmp_path: Path) -> Observe:
    """Observe a program in a folder of its own."""
    folder = tmp_path / "project"
    folder.mkdir()

    def run(program: str, *options: str, **settings: Any) -> Observed:
        return run_observe(folder, tmp_path, program, *options, **settings)

    return run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Observed:
    """One observation of a small plain loop with an evaluation between epochs, shared by many tests."""
    base = tmp_path_factory.mktemp("tiny")
    folder = base / "project"
    folder.mkdir()
    return run_observe(folder, base, TINY, "--steps", "30")
