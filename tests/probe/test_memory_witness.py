"""A program that runs out of memory, and catches the error, exits in its handler, or dies of it in a thread."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import with_probe

pytestmark = pytest.mark.slow

PROGRAM = """
import pickle, sys, threading, torch
from torch import nn
WORDS = "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes"
model = nn.Linear(4, 4)
class Failing(torch.optim.SGD):
    fails = False
    def step(self, closure=None):
        if self.fails:
            raise RuntimeError(WORDS)
        return super().step(closure)
optimizer = Failing(model.parameters(), lr=0.1)
def fail(_):
    raise RuntimeError(WORDS)
assert pickle.loads(pickle.dumps(sys.exit)) is sys.exit and sys.exit.__name__ == "exit"
def step(where=None):
    out = model(torch.ones(2, 4))
    if where == "forward":
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 4.00 KiB")
    if where == "backward":
        out.register_hook(fail)
    optimizer.zero_grad()
    out.sum().backward()
    optimizer.fails = where == "optimizer"
    optimizer.step()
step()
"""
SKIPS = """
for where in {where!r}, None, {where!r}, None:
    try:
        step(where)
    except RuntimeError as error:
        pass
"""
EXITS = """
try:
    step("backward")
except RuntimeError as error:
    {exit}
"""
THREAD = """
thread = threading.Thread(target=step, args=("backward",))
thread.start()
thread.join()
"""
OTHER_END = SKIPS.format(where="backward") + "raise ValueError('something else')"


def _ended(tmp_path: Path, end: str, code: int) -> dict[str, Any]:
    folder = tmp_path / "probe"
    tmp_path.mkdir(exist_ok=True)
    script = tmp_path / "train.py"
    script.write_text(PROGRAM + end)
    ended = subprocess.run(
        [sys.executable, str(script)], env=with_probe(folder), capture_output=True, text=True, check=False
    )
    assert ended.returncode == code, ended.stderr
    assert "hotloop" not in ended.stderr, "no frame of ours is in a traceback"
    (process,) = folder.glob("process-*.json")
    assert json.loads(process.read_text())["notes"] == []
    (file,) = folder.glob("out-of-memory-*.json")
    value: dict[str, Any] = json.loads(file.read_text())
    assert value["asked_bytes"] == 4096
    assert value["stack"][-1][2] in {"<module>", "_bootstrap_inner"}
    assert any(line[2] == "step" for line in value["stack"])
    return value


@pytest.mark.parametrize("where", ["forward", "backward", "optimizer"])
def test_what_a_program_catches_is_counted_where_it_fails(tmp_path: Path, where: str) -> None:
    value = _ended(tmp_path, SKIPS.format(where=where), 0)
    assert (value["num"], value["died"], value["went_on"]) == (2, False, True)
    assert value["phase"] == (None if where == "forward" else where)
    assert not value["by_class"], "a program that goes on is not looked through"


def test_a_program_that_exits_in_its_handler_died_of_it(tmp_path: Path) -> None:
    value = _ended(tmp_path, EXITS.format(exit="sys.exit(1)"), 1)
    assert (value["num"], value["died"], value["phase"]) == (1, True, "backward")
    assert value["by_class"]["parameters"] == 4 * 20


def test_how_it_exits_does_not_matter_for_what_is_known(tmp_path: Path) -> None:
    value = _ended(tmp_path, EXITS.format(exit="raise SystemExit(1)"), 1)
    assert (value["died"], value["went_on"]) == (False, False), "the exit code tells the rest"


def test_a_thread_that_dies_of_it_is_told_though_the_program_ends_well(tmp_path: Path) -> None:
    assert _ended(tmp_path, THREAD, 0)["died"]
    assert not _ended(tmp_path / "again", THREAD + "step()", 0)["died"], "training went on without it"


def test_another_end_than_the_one_that_was_caught_is_not_taken_for_it(tmp_path: Path) -> None:
    value = _ended(tmp_path, OTHER_END, 1)
    assert not value["died"]
    assert value["went_on"]
