"""Which forwards keep a graph in vain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotloop.probe.instruments.forwards import Forwards
from hotloop.probe.probe import Probe

_PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
teacher = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()

def train(watch, steps):
    watch.start()
    for _ in range(steps):
        x, y = torch.randn(6, 4), torch.randint(0, 2, (6,))
        logits = model(x)  # used
        target = teacher(x).detach()  # graph
        loss = criterion(logits, y) + (logits - target).square().mean()
        loss.backward()
        watch.step()
        model(x).argmax(1)  # again
        with torch.no_grad():
            model(x)  # quiet
        model.eval()
        model(x)  # scored
        model.train()
    return watch.stop()
"""


@pytest.fixture
def rows(tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What was seen, by the mark of the line."""
    path = tmp_path / "forwarding_program.py"
    path.write_text(_PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(
        probe, "compiles", lambda: False
    )  # another test of this process may have compiled something
    import forwarding_program  # type: ignore[import-not-found]

    try:
        seen = forwarding_program.train(Forwards(probe), 6)
    finally:
        del __import__("sys").modules["forwarding_program"]
    assert seen["steps"] == 5
    marks = {number: line.partition("# ")[2] for number, line in enumerate(_PROGRAM.splitlines(), 1)}
    return {marks[row["line"]] or "criterion": row for row in seen["rows"]}


def test_forwards_that_a_backward_goes_through_are_used(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["used"]["count"] == rows["criterion"]["count"] == 5
    assert rows["used"]["unused"] == rows["criterion"]["unused"] == 0


def test_a_graph_in_vain_and_a_batch_had_before(rows: dict[str, dict[str, Any]]) -> None:
    assert (rows["graph"]["unused"], rows["graph"]["repeated"]) == (5, 0)
    assert (rows["again"]["unused"], rows["again"]["repeated"]) == (4, 4), "the next step's"
    assert rows["again"]["unused_s"] > 0


def test_without_gradients_and_in_evaluation_mode_none_is_blamed(rows: dict[str, dict[str, Any]]) -> None:
    assert rows["quiet"]["unused"] == rows["scored"]["unused"] == 0


_FORMS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x=None, scale=1.0):
        x = x["x"] if isinstance(x, dict) else x.x if isinstance(x, Graph) else x
        return (self.inner(x.flatten(1)) * scale)[:, -1]

class Graph:
    def __init__(self, x):
        self.x = x

model = Net()

def train(watch, steps):
    watch.start()
    for _ in range(steps):
        x = torch.randn(6, 4)
        batch, graph = {"x": x}, Graph(x)
        out = model(x.view(6, 2, 2)) + model(x=x) + model(batch) + model(graph)  # used
        out.mul_(2)
        out.sum().backward()
        watch.step()
        model(x.view(6, 2, 2))  # view
        model(x=x)  # named
        model(batch)  # dict
        model(graph)  # graph
        model(x + 1)  # other
        x.add_(1)
        model(x=x)  # changed
        graph.x = x + 1
        model(graph)  # replaced
        with torch.inference_mode():
            model(torch.randn(6, 4))  # quiet
    return watch.stop()
"""


def test_the_same_batch_in_whatever_form_it_comes(
    tmp_path: Path, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "forms_program.py"
    path.write_text(_FORMS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(probe, "compiles", lambda: False)
    import forms_program  # type: ignore[import-not-found]

    try:
        seen = forms_program.train(Forwards(probe), 6)
    finally:
        del __import__("sys").modules["forms_program"]
    marks = {number: line.partition("# ")[2] for number, line in enumerate(_FORMS.splitlines(), 1)}
    told = {marks[row["line"]]: (row["unused"] > 0, row["repeated"] > 0) for row in seen["rows"]}
    again = dict.fromkeys(("view", "named", "dict", "graph"), (True, True))
    assert told == {
        "used": (False, False),
        **again,
        "other": (True, False),
        "changed": (True, False),
        "replaced": (True, False),
        "quiet": (False, False),
    }
    assert probe.facts.notes == []
