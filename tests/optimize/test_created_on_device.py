"""created_on_device: made where it is used, moved once, and left where that would not be the same.

The device is torch's own `meta`: tensors on it have everything but values.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from hotloop.launch.environment import probed
from hotloop.optimize.catalogue.compute.created_on_device.activation import DeviceMade
from hotloop.optimize.catalogue.compute.created_on_device.pattern import moves_of
from hotloop.optimize.catalogue.compute.created_on_device.row import CreatedOnDevice
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.process.config import ProbeConfig

from .harness import observation, root

SETTING = "import torch\ndevice = 'meta'\nweights = torch.arange(4.0)\nmade = []\n"


def run(program: str, activation: DeviceMade | None) -> tuple[list[Any], dict[str, Any]]:
    tree, names = ast.parse(SETTING + textwrap.dedent(program)), dict[str, Any]()
    if activation is not None:
        activation.on_source("train.py", tree, names)
    exec(compile(tree, "train.py", "exec"), names)
    seen = [(each.device.type, each.dtype, tuple(each.shape), each.stride()) for each in names["made"]]
    return seen, names


ACTS = {
    "zeros": "made.append(torch.zeros(2, n + 1).to(device))",
    "keywords": "made.append(torch.full((2, 3), fill_value=2).to(device=device, non_blocking=True))",
    "another type": "made.append(torch.arange(0, 10, 2).to(device, torch.float16))",
    "of another tensor": "made.append(torch.eye(3).to(made[-1] if made else torch.empty(1, device=device)))",
    "the same again": "made.append(weights.to(device))",
    "of an object": "made.append(holder.weights.to(device, dtype=torch.float64))",
}


@pytest.mark.parametrize("line", ACTS.values(), ids=ACTS)
def test_it_gives_the_same_and_acts(line: str) -> None:
    program = "class Holder:\n    pass\nholder = Holder()\nholder.weights = weights\n"
    program += f"for n in range(5):\n    {line}\n"
    plain, _ = run(program, None)
    activation = DeviceMade(at_once=True)
    assert run(program, activation)[0] == plain
    on, evidence = activation.effect()
    assert on, evidence
    assert "train.py:10" in evidence


def test_a_buffer_of_a_module_is_moved_once() -> None:
    program = """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.mask = torch.ones(3)
            def forward(self, x):
                return x * self.mask.to(x.device)
        net = Net()
        for n in range(4):
            made.append(net(torch.ones(3, device=device)))
    """
    activation = DeviceMade(at_once=True)
    assert run(program, activation)[0] == run(program, None)[0]
    assert activation.effect()[1].startswith("0 tensors were made on the device, 2 moves of the same saved")


LEFT = {
    "a batch": "for x in weights.split(1):\n    made.append(x.to(device))",
    "changed in place on the host": "for n in range(5):\n    weights.add_(1)\n    made.append(weights.to(device))",
    "random numbers": "for n in range(5):\n    made.append(torch.randn(3).to(device))",
    "made there already": "for n in range(5):\n    made.append(torch.zeros(3, device=device).to(device))",
    "to the host": "for n in range(5):\n    made.append(torch.zeros(3).to('cpu'))",
    "a type": "for n in range(5):\n    made.append(weights.to(torch.float64))",
    "gradients": "w = weights.requires_grad_()\nfor n in range(5):\n    made.append(w.to(device).detach())",
    "assigned in the loop": "for n in range(5):\n    made.append(weights.to(device))\n    weights = weights + 1",
    "its copy is changed": "for n in range(5):\n    w = weights.to(device)\n    w += n\n    made.append(w)",
    "out of a loop": "made.append(torch.zeros(3).to(device))",
}


@pytest.mark.parametrize("program", LEFT.values(), ids=LEFT)
def test_what_would_not_be_the_same_is_left(program: str) -> None:
    activation = DeviceMade(at_once=True)
    assert run(program, activation)[0] == run(program, None)[0]
    on, evidence = activation.effect()
    assert not on, evidence


def test_what_numpy_changes_is_moved_again() -> None:
    program = """
        import numpy as np
        array = np.zeros(3)
        weights = torch.from_numpy(array)
        for n in range(6):
            array += n > 3
            made.append(weights.to(device))
    """
    _, names = run(program, DeviceMade(at_once=True))
    assert [one is two for one, two in zip(names["made"], names["made"][1:], strict=False)] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_copy_that_is_changed_unseen_ends_it() -> None:
    program = (
        "def use(other):\n    other.add_(1)\nfor n in range(6):\n    w = weights.to(device)\n    use(w)\n"
    )
    activation = DeviceMade(at_once=True)
    run(program, activation)
    assert activation.effect() == (
        False,
        "left: train.py:8: what was moved is changed in place",
    )


def test_what_a_device_makes_differently_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "equal", lambda *_: False)
    monkeypatch.setattr(torch.Tensor, "is_meta", False)
    activation = DeviceMade(at_once=True)
    run("for n in range(4):\n    made.append(torch.linspace(0, 1, 3).to(device))", activation)
    assert activation.effect() == (False, "left: train.py:6: the device makes other numbers")


def test_it_goes_on_and_off() -> None:
    program = f"for n in range(4):\n    {ACTS['zeros']}\n    {ACTS['the same again']}\n"
    knob = DeviceMade(at_once=False)
    _, names = run(program, knob)
    assert len({id(each) for each in names["made"]}) == 8
    assert not knob.effect()[0]
    knob.switch(True)
    run(program, knob)
    assert knob.effect()[0]


PROGRAM = '''
"""Trains."""
from __future__ import annotations
import sys, torch
from parts import Net
assert (__spec__, __package__, __name__, sys.path[0]) == (None, None, "__main__", sys.argv[1]), sys.path
weights = torch.arange(4.0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(6):
    on_device = torch.zeros(3).to("meta"), weights.to("meta")
    loss = net(torch.ones(2, 4)).square().sum()
    loss.backward()
    optimizer.step()
print(__doc__, f"{float(loss):.3f}")
raise ValueError("at its end")
'''
PARTS = """
import torch

class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(4, 1)
        self.scale = torch.ones(1)
    def forward(self, x):
        self.scale.to("meta")
        return super().forward(x)
"""


@pytest.mark.parametrize("way", [["train.py"], ["-m", "train"]])
@pytest.mark.slow
def test_an_unmodified_program_runs_changed_and_its_files_stay(tmp_path: Path, way: list[str]) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "parts.py").write_text(PARTS)
    program = PROGRAM if way == ["train.py"] else PROGRAM.replace("(None, None, ", "(__spec__, '', ")
    (tmp_path / "train.py").write_text(program)
    probe = tmp_path / "probe"
    probe.mkdir()
    config = ProbeConfig(folder=str(probe), activations=(CreatedOnDevice().order({}),))
    config.save(probe / "probe.json")
    done = subprocess.run(
        [sys.executable, *way, str(tmp_path)],
        cwd=tmp_path,
        env=probed(os.environ, probe / "probe.json"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Trains. "), done.stderr
    assert (
        f'train.py", line {program[: program.index("raise")].count(chr(10)) + 1}, in <module>' in done.stderr
    )
    assert 'raise ValueError("at its end")' in done.stderr
    facts = json.loads(next(probe.glob("process-*.json")).read_text())
    assert not facts["notes"], facts["notes"]
    (effect,) = facts["effects"]
    assert effect["on"], effect
    assert effect["evidence"].startswith("5 tensors were made on the device, 8 moves of the same saved")
    assert "parts.py:9, train.py:11" in effect["evidence"]
    assert (tmp_path / "train.py").read_text() == program


def seen(folder: Path, text: str, **program: Any) -> Any:
    path = folder / "train.py"
    path.write_text(SETTING + text)
    return observation(roots=(root(code_files=(str(path),), **program),), device="cuda")


def test_it_applies_where_a_line_moves(tmp_path: Path) -> None:
    assert CreatedOnDevice().candidates(seen(tmp_path, f"for n in range(5):\n    {ACTS['zeros']}"))
    assert (
        len(moves_of(ast.parse(SETTING + f"while True:\n    {ACTS['zeros']}\n    {ACTS['the same again']}")))
        == 2
    )


def test_where_it_does_not_apply(tmp_path: Path) -> None:
    with pytest.raises(DoesNotApply, match="no line makes a tensor on the host"):
        CreatedOnDevice().candidates(seen(tmp_path, LEFT["random numbers"]))
    with pytest.raises(DoesNotApply, match="compiles its model"):
        CreatedOnDevice().candidates(seen(tmp_path, "", compiled=True))
    with pytest.raises(DoesNotApply, match="computes on the CPU"):
        CreatedOnDevice().candidates(observation())
