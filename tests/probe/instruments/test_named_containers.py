"""Containers are found under the names that a program has for them, wherever their objects lie."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from hotloop.probe.instruments.frames import Frames
from hotloop.probe.instruments.growing_containers import described
from hotloop.probe.instruments.named_containers import NamedContainers, Place

_PROGRAM = """
from collections import OrderedDict, defaultdict
from torch import nn

class Trainer:
    def __init__(self, name):
        self.logs = defaultdict(list)
        self.logs[name].append(1)

class Slotted:
    __slots__ = ("steps",)
    def __init__(self):
        self.steps = [1]

class Recent(OrderedDict):
    pass

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.cache = {}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

losses = defaultdict(list)
losses["loss"].append(1)
recent = Recent(a=[1])
agents = [Trainer("first")]
by_name = {"a": Trainer("second"), 3: Trainer("third")}
net = Net()
slotted = Slotted()
"""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names in the program."""
    path = tmp_path / "named_program.py"
    path.write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import named_program  # type: ignore[import-not-found]

    every = NamedContainers(Frames()).of_modules()
    yield [place.name for place, _ in every if place.path == str(path)]
    assert named_program
    del sys.modules["named_program"]


def test_dictionaries_of_lists_and_classes_made_of_containers_are_found(found: list[str]) -> None:
    assert {"losses", "losses['loss']", "recent", "recent['a']"} <= set(found)


def test_objects_in_lists_and_dictionaries_are_followed(found: list[str]) -> None:
    inside = [name for name in found if name.startswith("self.logs[")]
    assert "self.steps" in found, "a slot is an attribute, too"
    assert sorted(inside) == ["self.logs['first']", "self.logs['second']", "self.logs['third']"]


def test_a_part_of_a_model_is_followed_and_torch_s_own_dictionaries_are_not_told(found: list[str]) -> None:
    assert "self.cache" in found
    assert not [name for name in found if name.startswith("self._")]


def test_a_tensor_in_an_object_that_is_gathered_is_seen() -> None:
    class Step:
        def __init__(self, loss: torch.Tensor) -> None:
            self.loss = loss

    one = [Step(nn.Linear(2, 2)(torch.ones(1, 2)).sum())]
    assert described(Place("steps", "", ""), one, 1.0)["keeps_graph"]


_ENDED = """
import atexit
import torch

class Agent:
    def __init__(self):
        self.memory = [1]

def look():
    from hotloop.probe.instruments.frames import Frames
    from hotloop.probe.instruments.named_containers import NamedContainers
    print([place.name for place, _ in NamedContainers(Frames()).of_modules()])

agent = Agent()
atexit.register(look)
"""


def test_names_of_a_program_that_has_ended_are_still_found(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_ENDED)
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "self.memory" in ended.stdout
