"""Which loops in the forward could be one operation, and which are loops by nature."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hotloop.diagnose.lines.forward_loops import forward_loops
from hotloop.model.deep import Deep, Frame, HostSamples, Sample
from hotloop.model.line_work import LineWork, StepWork
from hotloop.model.observation import Observation
from hotloop.model.operators import Operators

from .observations import FINE
from .watched_cases import operator

_CALL = Frame("/lib/torch/nn/modules/module.py", 1787, "_call_impl", "torch")
_TORCH = Frame("/lib/torch/nn/functional.py", 5, "linear", "torch")


def _seen(
    path: Path,
    line: int,
    *,
    below: int = 0,
    num: float = 5000.0,
    phase: str = "forward",
    inner: Frame = _TORCH,
    forward_s: float = 0.25,
) -> Observation:
    """So many seconds of samples in a line of the forward, under so many modules' calls, and 0.25 in the backward."""
    frames = (Frame("train.py", 1, "main"), _CALL, Frame(str(path), line, "forward"), inner)
    stack = (0, 1, 2, *([1] * below), 3)
    samples = (
        Sample(stack, "train", phase, spent_s=forward_s, num=50),
        Sample((0,), "train", "backward", spent_s=0.25, num=50),
    )
    host = HostSamples(num_steps=9, window_s=1.0, interval_s=0.005, lines=(), frames=frames, samples=samples)
    seen = Operators(
        num_steps=3,
        window_s=0.3,
        num=num,
        self_s=0.09,
        device_s=None,
        operators=(operator("aten::addmm", 0.5, count=64.0),),
    )
    return msgspec.structs.replace(FINE, deep=Deep(host=host, operators=seen))


def _found(tmp_path: Path, body: str, line: int, **changes: float) -> list[int | None]:
    path = tmp_path / "model.py"
    path.write_text("def forward(self, x):\n" + body)
    observation = _seen(path, line, **changes)  # type: ignore[arg-type]
    return [finding.line for finding in forward_loops(observation, [str(path)])]


_ROWS = "    total = 0\n    for i in range(len(x)):\n        total = total + (x[i] - 1).square().mean()\n"
_PAIRS = (
    "    parts = []\n    for i in range(len(x)):\n        for j in range(len(x)):\n"
    "            gap = x[i] - x[j]\n            parts.append(gap.exp())\n"
)
_TOKENS = "    out = []\n    for t in range(x.size(1)):\n        out.append(self.layer(x[:, t]))\n"


@pytest.mark.parametrize(
    ("body", "line", "below", "expected"),
    [(_ROWS, 4, 0, 3), (_PAIRS, 5, 0, 3), (_TOKENS, 4, 1, 3)],
    ids=["a sum over rows", "pairs", "a layer for each token"],
)
def test_turns_that_stand_for_themselves(
    tmp_path: Path, body: str, line: int, below: int, expected: int
) -> None:
    assert _found(tmp_path, body, line, below=below) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "    for layer in self.layers:\n        x = layer(x)\n",
        "    for layer in self.layers:\n        x = x + layer(x)\n",
        "    for layer in self.layers:\n        x += layer(x)\n",
        "    for t in range(9):\n        h = self.cell(x[t], h)\n",
        "    while self.busy(x):\n        x = self.layer(x)\n",
        "    for i in range(9):\n        x = self.layers[i](x)\n",
    ],
)
def test_layers_one_after_the_other_and_recurrences_are_loops_by_nature(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body, 3, below=1) == []


@pytest.mark.parametrize(
    "body",
    [
        "    for row in x:\n        for l in range(2):\n            row = h[l] = self.cells[l](row, h[l])\n",
        "    for t in range(len(x)):\n        alpha[:, t] = x[t] + alpha[:, t - 1].logsumexp(0)\n",
        "    for row in x:\n        self.h = torch.tanh(row + self.h)\n",
        "    for row in x:\n        xs.append(torch.tanh(row + xs[-1]))\n",
        "    for row in x:\n        v += row\n        spikes.append(v > 1)\n",
        "    for row in x:\n        v.mul_(0.9).add_(row)\n",
        "    for t in range(9):\n        if t == 0:\n            h = x[0]\n        h = torch.tanh(x[t] + h)\n",
    ],
    ids=["subscript", "column", "attribute", "list", "a sum that is read", "in place", "made in one branch"],
)
def test_state_that_is_no_name_is_state(tmp_path: Path, body: str) -> None:
    line = 2 + body.count("\n") - 1
    assert _found(tmp_path, body, line) == []


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(len(x)):\n        out[i] = x[i].amax(0)\n        total += out[i].sum()\n",
        "    for i, row in enumerate(x):\n        out[:, i] = torch.stack([each.exp() for each in row])\n",
        "    for n in sizes:\n        out.append(x[at : at + n].amax(0))\n        at += n\n",
        "    for n in sizes:\n        end = at + n\n        out.append(x[at:end].amax(0))\n        at = end\n",
    ],
    ids=["a place for each turn", "a column for each turn", "running offset", "start and end"],
)
def test_places_and_offsets_of_a_turn_are_no_state(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body, 3) == [2]


@pytest.mark.parametrize(
    "body",
    [
        "    for n in sizes:\n        out.append(x[at] * at)\n        at += n\n",
        "    for n in sizes:\n        at = follows[at]\n        out.append(x[at])\n",
    ],
    ids=["an offset that is computed with", "a chain of places"],
)
def test_what_is_read_as_a_value_is_no_offset(tmp_path: Path, body: str) -> None:
    assert _found(tmp_path, body, 3) == []


def test_turns_that_are_all_the_same_go_over_no_tensor(tmp_path: Path) -> None:
    assert _found(tmp_path, "    for _ in range(16):\n        total += self.net(x)\n", 3, below=1) == []


def test_a_module_that_keeps_a_state_makes_a_recurrence(tmp_path: Path) -> None:
    neuron = (
        "def forward(self, x):\n    for row in x:\n        total += self.lif(row)\n"
        "class Lif:\n    def forward(self, x):\n        {} = 0.9 * self.v + x\n        return self.scale * x\n"
    )
    path = tmp_path / "model.py"
    observation = _seen(path, 3, below=1, inner=Frame(str(path), 7, "forward"))
    path.write_text(neuron.format("self.v"))
    assert list(forward_loops(observation, [str(path)])) == []
    path.write_text(neuron.format("v"))
    assert [one.line for one in forward_loops(observation, [str(path)])] == [2]


def test_a_loop_over_views_that_runs_a_whole_encoder_is_no_loop_over_a_tensor(tmp_path: Path) -> None:
    views = "    for view in x:\n        out.append(self.encoder(view))\n"
    assert _found(tmp_path, views, 3, below=4) == []


def test_heads_beside_one_another_are_many_where_a_step_has_thousands_of_operators(tmp_path: Path) -> None:
    heads = "    return torch.cat([head(x) for head in self.heads])\n"
    assert _found(tmp_path, heads, 2, below=2) == [2]
    assert _found(tmp_path, heads, 2, below=1, num=400.0) == []


@pytest.mark.parametrize(("runs", "expected"), [(64.0, [3]), (2.0, [])])
def test_operators_counted_by_line_are_enough(runs: float, expected: list[int], tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("def forward(self, x):\n" + _ROWS)
    observation = _with_work(_seen(path, 4), path, runs=runs, backward_share=0.0)
    assert [one.line for one in forward_loops(observation, [str(path)])] == expected


@pytest.mark.parametrize(("backward_share", "expected"), [(0.9, [3]), (0.0, [])])
def test_a_loop_whose_time_is_its_backward(
    backward_share: float, expected: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    path.write_text("def forward(self, x):\n" + _ROWS)
    observation = _with_work(_seen(path, 4, forward_s=0.02), path, runs=64.0, backward_share=backward_share)
    assert [one.line for one in forward_loops(observation, [str(path)])] == expected


def _with_work(observation: Observation, path: Path, *, runs: float, backward_share: float) -> Observation:
    """Operators counted by line, in line 4, in place of those of the profiler."""
    line = LineWork(
        path=str(path),
        line=4,
        function="forward",
        runs=runs,
        operators=3 * runs,
        nodes=0.0,
        forward_s=0.1,
        forward_repeated_s=0.1,
        forward_host_s=0.0,
        backward_share=backward_share,
        backward_repeated_share=backward_share,
    )
    work = StepWork(num_steps=1, window_s=0.2, backward_s=0.05, lines=(line,))
    assert observation.deep is not None
    return msgspec.structs.replace(
        observation, deep=msgspec.structs.replace(observation.deep, operators=None, line_work=work)
    )
