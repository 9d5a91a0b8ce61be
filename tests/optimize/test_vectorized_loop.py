"""vectorized_loop: the same in one call, and left where the turns are not independent."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from hotloop.launch.environment import probed
from hotloop.model.deep import Deep, HostLine, HostSamples
from hotloop.optimize.catalogue.compute.vectorized_loop.activation import BatchedTurns
from hotloop.optimize.catalogue.compute.vectorized_loop.row import VectorizedLoop
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.process.config import ProbeConfig

from .harness import observation, root

SETTING = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(6, 5, requires_grad=True)
y = torch.randint(5, (6,))
layer = torch.nn.Linear(5, 5)
results = []
"""


def run(program: str, activation: BatchedTurns | None) -> list[torch.Tensor]:
    """Run the function `step` four times; return its results, and the gradients of what it starts from."""
    tree, names = ast.parse(SETTING + textwrap.dedent(program)), dict[str, Any]()
    if activation is not None:
        activation.on_source("train.py", tree, names)
    exec(compile(tree, "train.py", "exec"), names)
    results = []
    for _ in range(4):
        result = names["step"]()
        if result.requires_grad:
            result.sum().backward()
        results.append(result.detach())
    gradients = [names["x"].grad, *(each.grad for each in names["layer"].parameters())]
    return results + [each for each in gradients if each is not None]


ACTS = {
    "rows": """
        def step():
            loss = 0
            for row in x:
                centred = row - row.mean()
                loss = loss + centred.square().mean()
            return loss
    """,
    "by place": """
        def step():
            loss = torch.zeros(())
            for i in range(len(x)):
                loss += F.cross_entropy(x[i : i + 1], y[i : i + 1])
            return loss / len(x)
    """,
    "a place in the row": """
        def step():
            picked = []
            for i in range(x.size(0)):
                scores = F.log_softmax(x[i], dim=0)
                picked.append(-scores[y[i]])
            return torch.stack(picked)
    """,
    "two indices": """
        def step():
            total = 0.0
            for i in range(4):
                total = x[i, y[i]] + total
            return total
    """,
    "zip and enumerate, through a layer": """
        def step():
            out = torch.zeros(6, 5)
            for i, (row, label) in enumerate(zip(x, y)):
                out[i] = layer(row) * label
            return out
    """,
    "a function of the program's own": """
        def distance(a, b):
            d = a - b
            return d.pow(2).sum().sqrt()
        def step():
            total, all_ = 0, []
            mean = x.mean(0)
            for row in x:
                d = distance(row, mean)
                total += d
                all_.append(d * 2)
            return total + torch.stack(all_).sum()
    """,
    "in a class": """
        class Loss:
            scale = 2.0
            def __call__(self):
                loss = 0
                for row in x:
                    loss = loss + (row * self.scale).logsumexp(0)
                return loss
        step = Loss()
    """,
}


@pytest.mark.parametrize("program", ACTS.values(), ids=ACTS)
def test_it_computes_the_same_in_one_call(program: str) -> None:
    plain, activation = run(program, None), BatchedTurns(at_once=True)
    for one, other in zip(plain, run(program, activation), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    on, evidence = activation.effect()
    assert on, evidence
    assert "2x, within" in evidence  # of the four runs, the first two are the loop's own


def test_within_a_checkpointed_block() -> None:
    """Its second forward has to save as much as its first: nothing changes before the next one."""
    program = """
        from torch.utils.checkpoint import checkpoint
        def block(rows):
            loss = 0
            for row in rows:
                loss = loss + row.exp().mean()
            return loss
        def step():
            forward_begins()
            return checkpoint(block, x, use_reentrant=False) + checkpoint(block, x * 2, use_reentrant=False)
    """
    activation = BatchedTurns(at_once=True)
    begins = "def forward_begins():\n    pass\n"
    plain = run(begins + textwrap.dedent(program), None)
    activation_begins = (
        "def forward_begins():\n    _hotloop_all_rows.__self__.on_forward_inputs(None, (), {})\n"
    )
    for one, other in zip(plain, run(activation_begins + textwrap.dedent(program), activation), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert activation.effect()[0], activation.effect()


def test_what_is_appended_may_be_changed() -> None:
    """As the loop gives it: each entry a tensor of its own, whose change no other one's gradient sees."""
    program = """
        def step():
            outs = []
            for i in range(x.shape[0]):
                outs.append(layer(x[i]))
            squares = outs[0] * outs[0]
            for o in outs[1:]:
                o[0] += 1.0
                o.mul_(2)
            return torch.stack(outs).square().sum() + squares.sum()
    """
    plain, activation = run(program, None), BatchedTurns(at_once=True)
    for one, other in zip(plain, run(program, activation), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert activation.effect()[0], activation.effect()


LEFT = {
    "parts of what there is": (
        "it appends parts of a tensor, which are not its own",
        """
        def step():
            rows, y = [], x.detach().clone()
            for i in range(6):
                rows.append(y[i].view(5))
            rows[0].mul_(2)
            return (y * x).sum()
        """,
    ),
    "carried state": (
        "h is carried from turn to turn",
        """
        def step():
            h, out = torch.zeros(5), []
            for row in x:
                h = torch.tanh(row + h)
                out.append(h)
            return torch.stack(out)
        """,
    ),
    "a sum that is read": (
        "total is read in the loop that makes it",
        """
        def step():
            total, out = torch.zeros(5), []
            for row in x:
                out.append(row / (1 + total))
                total = total + row
            return torch.stack(out)
        """,
    ),
    "a product": (
        "nothing comes of its turns",
        """
        def step():
            p = torch.ones(5)
            for row in x:
                p = p * row
            return p
        """,
    ),
    "random numbers": (
        "does more than compute",
        """
        def step():
            out = 0
            for row in x:
                out = out + torch.randn(5) * row
            return out
        """,
    ),
    "dropout in a layer": (
        "randomness",
        """
        drop = torch.nn.Dropout(0.5)
        def step():
            out = 0
            for row in x:
                out = out + drop(row)
            return out
        """,
    ),
    "a branch on a value": (
        "line 13 does more than name",
        """
        def step():
            out = 0
            for row in x:
                if row.sum() > 0:
                    out = out + row
            return out
        """,
    ),
    "a choice by a value": (
        "data-dependent",
        """
        def step():
            out = 0
            for row in x:
                out = out + (row if row.sum() > 0 else -row)
            return out
        """,
    ),
    "its neighbour": (
        "it counts with i",
        """
        def step():
            out = 0
            for i in range(5):
                out = out + x[i] * x[i + 1]
            return out
        """,
    ),
    "the number of the turn": (
        "it counts with i",
        """
        def step():
            out = 0
            for i in range(6):
                out = out + x[i] * i
            return out
        """,
    ),
    "in place": (
        "may do more than compute",
        """
        kept = torch.zeros(5)
        def step():
            out = 0
            for row in x:
                out = out + kept.add_(row.detach())
            return out
        """,
    ),
    "a function that counts": (
        "tell() may do more than compute",
        """
        told = []
        def tell(row):
            told.append(1)
            return row * len(told)
        def step():
            out = 0
            for row in x:
                out = out + tell(row)
            return out
        """,
    ),
    "a module of the program's own": (
        "Own may do more than compute",
        """
        class Own(torch.nn.Module):
            seen = 0
            def forward(self, row):
                self.seen += 1
                return row * self.seen
        own = Own()
        def step():
            out = 0
            for row in x:
                out = out + own(row)
            return out
        """,
    ),
    "batch norm": (
        "left: train.py",
        """
        norm = torch.nn.BatchNorm1d(5)
        def step():
            out = 0
            for i in range(len(x)):
                out = out + norm(x[i : i + 1].expand(2, 5))
            return out
        """,
    ),
    "numbers": (
        "item() may do more",
        """
        def step():
            out = 0.0
            for row in x:
                out += row.sum().item()
            return torch.tensor(out)
        """,
    ),
    "a list": (
        "it goes over a list",
        """
        parts = [x[0], x[1]]
        def step():
            out = 0
            for row in parts:
                out = out + row.exp()
            return out
        """,
    ),
    "read behind the loop": (
        "row is read outside of the loop",
        """
        def step():
            out = 0
            for row in x:
                out = out + row
            return out + row
        """,
    ),
    "one turn late": (
        "comes after a result was taken",
        """
        def step():
            last = out = 0
            for i in range(6):
                out = out + last
                last = x[i]
            return out
        """,
    ),
}


@pytest.mark.parametrize(("reason", "program"), LEFT.values(), ids=LEFT)
def test_what_is_not_independent_is_left(reason: str, program: str) -> None:
    plain, activation = run(program, None), BatchedTurns(at_once=True)
    for one, other in zip(plain, run(program, activation), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    on, evidence = activation.effect()
    assert not on, evidence
    assert reason in evidence


def test_a_wrong_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    vmap = torch.vmap
    monkeypatch.setattr(
        torch, "vmap", lambda turn: lambda *rows: vmap(turn)(*(row.roll(1, 0) * 1.01 for row in rows))
    )
    activation = BatchedTurns(at_once=True)
    run(ACTS["rows"], activation)
    on, evidence = activation.effect()
    assert not on
    assert "its results differ by" in evidence


def test_gradients_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    vmap = torch.vmap
    monkeypatch.setattr(
        torch,
        "vmap",
        lambda turn: lambda *rows: vmap(turn)(*(row * 1.5 - row.detach() * 0.5 for row in rows)),
    )
    activation = BatchedTurns(at_once=True)
    run(ACTS["rows"], activation)
    assert "its gradients differ by" in activation.effect()[1]


def test_it_goes_on_and_off() -> None:
    knob = BatchedTurns(at_once=False)
    run(ACTS["rows"], knob)
    assert not knob.effect()[0]
    knob.switch(True)
    run(ACTS["rows"], knob)
    assert knob.effect()[0]


PROGRAM = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(6):
    output = model(torch.ones(16, 8))
    loss = 0
    for row in output:
        loss = loss + (row - row.mean()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
"""


@pytest.mark.slow
def test_an_unmodified_program_makes_them_in_one_call(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    order = VectorizedLoop().order({})
    ProbeConfig(folder=str(tmp_path), activations=(order,)).save(tmp_path / "probe.json")
    environment = probed(os.environ, tmp_path / "probe.json")
    command = [sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "done\n", done.stderr
    facts = json.loads(next(tmp_path.glob("process-*.json")).read_text())
    assert not facts["notes"]
    assert facts["effects"][0]["evidence"].startswith("in one call: train.py:8 4x, within")


def seen(folder: Path, text: str, share: float | None = None) -> Any:
    path = folder / "train.py"
    path.write_text(SETTING + textwrap.dedent(text))
    measured = observation(roots=(root(code_files=(str(path),)),))
    if share is None:
        return measured
    line = HostLine(
        path=str(path),
        line=12,
        function="step",
        process="train",
        phase="forward",
        share=share,
        spent_s=1.0,
        num=9,
    )
    host = HostSamples(num_steps=9, window_s=1.0, interval_s=0.01, lines=(line,), frames=(), samples=())
    return msgspec.structs.replace(measured, deep=Deep(host=host))


@pytest.mark.parametrize("share", [None, 0.4])
def test_it_applies_where_a_loop_takes_its_part(tmp_path: Path, share: float | None) -> None:
    (candidate,) = VectorizedLoop().candidates(seen(tmp_path, ACTS["rows"], share))
    assert candidate.prior > (1.5 if share else 1.0)


def test_a_loss_in_a_file_of_its_own_is_found(tmp_path: Path) -> None:
    measured = seen(tmp_path, ACTS["rows"], 0.4)
    facts = msgspec.structs.replace(measured.program, roots=())
    assert VectorizedLoop().candidates(msgspec.structs.replace(measured, program=facts))


@pytest.mark.parametrize(
    ("program", "share", "reason"),
    [
        (LEFT["carried state"][1], None, "train.py:12: h is carried"),
        (ACTS["rows"], 0.001, "take 0.1% of the step"),
        ("def step():\n    return x.sum()\n", None, "no loop of the program"),
    ],
)
def test_where_it_does_not_apply(tmp_path: Path, program: str, share: float | None, reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        VectorizedLoop().candidates(seen(tmp_path, program, share))
