"""Which containers gain tensors with every step, and what they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.instruments.growing_containers import GrowingContainers
from hotloop.probe.probe import Probe

_PROGRAM = """
import collections
import functools
import torch

weight = torch.ones(8, requires_grad=True)
everything = []
numbers = []
recent = collections.deque(maxlen=3)
seen = {-1: torch.zeros(16)}
made_anew = []
logs = {"loss": []}

@functools.cache
def looked_up(step):
    return b"x" * 5000

class Recorder:
    def __init__(self):
        self.features = []
        self.settings = {"a": torch.zeros(2)}

    def keep(self, value):
        self.features.append({"value": value})

recorder = Recorder()
layer = torch.nn.Linear(2, 2)

def piled(module, inputs, output):
    return None

def keep_hooks(module):
    module.register_forward_hook(piled)  # registers
    module.register_forward_hook(lambda *_: None).remove()

def train(growing_containers, steps):
    global made_anew
    local = []
    for step in range(2 + steps):
        if step == 2:
            growing_containers.start()
        made_anew = [torch.zeros(1) for _ in range(step)]
        loss = (weight * step).sum()
        everything.append(loss)
        numbers.append(loss.item())
        logs["loss"].append(loss.item())
        looked_up(step)
        recent.append(loss)
        seen[step] = torch.zeros(16)
        recorder.keep(loss.detach())
        local.append((step, torch.zeros(4)))
        keep_hooks(layer)
        if step >= 2:
            growing_containers.step()
    return growing_containers.stop()
"""


@pytest.fixture
def value(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the instrument says of a program."""
    path = tmp_path / "holding_program.py"
    path.write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import holding_program  # type: ignore[import-not-found]

    try:
        seen: dict[str, Any] = holding_program.train(GrowingContainers(probe), 8)
    finally:
        del __import__("sys").modules["holding_program"]
    return seen


@pytest.fixture
def found(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Its containers, by name."""
    return {one["name"]: one for one in value["containers"]}


def test_it_names_what_gains_entries_and_says_which_are_tensors(found: dict[str, dict[str, Any]]) -> None:
    tensors = {name for name, one in found.items() if one["has_tensors"]}
    assert tensors == {"everything", "seen", "self.features", "local"}
    assert set(found) - tensors == {"numbers", "logs['loss']", "looked_up"}


def test_a_cache_of_python_objects_has_its_size(found: dict[str, dict[str, Any]]) -> None:
    assert found["looked_up"]["kind"] == "dict"
    assert found["looked_up"]["bytes_per_step"] == pytest.approx(5000, rel=0.02)


def test_it_says_what_is_kept(found: dict[str, dict[str, Any]]) -> None:
    everything = found["everything"]
    assert everything["per_step"] == 1
    assert everything["keeps_graph"]
    assert everything["function"] == "<module>"
    assert everything["bytes_per_step"] == 4
    features = found["self.features"]
    assert not features["keeps_graph"]
    assert features["function"] == "Recorder"
    assert found["local"]["function"] == "train"
    assert found["seen"]["kind"] == "dict"
    assert found["seen"]["bytes_per_step"] == 16 * 4
    assert all(Path(one["path"]).name == "holding_program.py" for one in found.values())


def test_hooks_that_pile_up_have_the_line_that_registers_them(value: dict[str, Any]) -> None:
    (hook,) = value["hooks"]
    lines = _PROGRAM.splitlines()
    assert lines[hook["line"] - 1].endswith("# registers")
    assert lines[hook["hook_line"] - 1].startswith("def piled")
    assert (hook["hook"], hook["per_step"]) == ("piled", 1.0)
    assert hook["num"] >= 10


def test_registering_is_as_it_was_afterwards(value: dict[str, Any]) -> None:
    from torch.utils.hooks import RemovableHandle

    assert value
    assert "frameless" not in type(vars(RemovableHandle)["__init__"]).__module__
