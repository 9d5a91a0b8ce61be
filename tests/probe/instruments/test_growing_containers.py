"""Which containers gain tensors with every step, and what they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.instruments.growing_containers import GrowingContainers
from hotloop.probe.probe import Probe

_PROGRAM = """
import collections
import torch

weight = torch.ones(8, requires_grad=True)
everything = []
numbers = []
recent = collections.deque(maxlen=3)
seen = {-1: torch.zeros(16)}
made_anew = []

class Recorder:
    def __init__(self):
        self.features = []
        self.settings = {"a": torch.zeros(2)}

    def keep(self, value):
        self.features.append({"value": value})

recorder = Recorder()

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
        recent.append(loss)
        seen[step] = torch.zeros(16)
        recorder.keep(loss.detach())
        local.append((step, torch.zeros(4)))
        if step >= 2:
            growing_containers.step()
    return growing_containers.stop()
"""


@pytest.fixture
def found(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What the instrument says of a program, by name."""
    path = tmp_path / "holding_program.py"
    path.write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import holding_program  # type: ignore[import-not-found]

    try:
        return {one["name"]: one for one in holding_program.train(GrowingContainers(probe), 8)}
    finally:
        del __import__("sys").modules["holding_program"]


def test_it_names_what_gains_tensors_and_nothing_else(found: dict[str, dict[str, Any]]) -> None:
    assert set(found) == {"everything", "seen", "self.features", "local"}


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
