"""What the probe notes of the program's own switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.observe.decode.processes import read_processes

from .conftest import RunProgram

_PROGRAM = """
import contextlib, torch
from torch import nn
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    with {around}:
        loss = model(torch.randn(8, 4)).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("around", "seen"),
    [
        ("torch.autograd.detect_anomaly()", True),
        ("torch.autograd.set_detect_anomaly(True)", True),
        ("contextlib.nullcontext()", False),
    ],
)
def test_anomaly_mode_around_the_backward_alone(
    run_probed: RunProgram, tmp_path: Path, around: str, seen: bool
) -> None:
    done = run_probed(_PROGRAM.format(around=around))
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert facts["anomaly_mode"] is seen


def test_the_newer_precision_settings_take_no_other_fact_along(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    """Once they are used, torch's older getter raises."""
    newer = "torch.backends.cuda.matmul.fp32_precision = 'tf32'\n"
    done = run_probed(
        _PROGRAM.replace("model =", newer + "model =").format(around="contextlib.nullcontext()")
    )
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert facts["matmul_precision"] == "high"
    assert facts["convolution_precision"] == "tf32"
    assert facts["optimizers"]
    assert facts["unread"] == {}


def test_a_fact_that_cannot_be_read_is_named_and_the_others_are_there(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    hidden = "del torch.backends.cudnn.__class__.benchmark\n"
    done = run_probed(
        _PROGRAM.replace("model =", hidden + "model =").format(around="contextlib.nullcontext()")
    )
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert facts["cudnn_benchmark"] is None
    assert list(facts["unread"]) == ["cudnn_benchmark"]
    assert facts["optimizers"]


def test_batches_of_another_size_in_evaluation_are_no_varying_shapes(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    """A language model reads columns of text: 20 at once in training, 10 in evaluation."""
    done = run_probed("""
import torch
from torch import nn
words, letters = nn.Embedding(5, 4), nn.Embedding(5, 3)
optimizer = torch.optim.SGD([*words.parameters(), *letters.parameters()], lr=0.1)
for step in range(6):
    fixed, varying = torch.zeros(7, 20, dtype=torch.long), torch.zeros(7, 20 + step, dtype=torch.long)
    (words(fixed).sum() + letters(varying).sum()).backward()
    optimizer.step()
    with torch.no_grad():
        words(torch.zeros(7, 10, dtype=torch.long))
""")
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert [root.get("shapes_vary", False) for root in facts["roots"]] == [False, True]


_WITHIN = """
import torch
from torch import nn
class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 2)
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled={enabled}):
            return self.model(x).float()
model = Wrapped()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("enabled", "dtype"), [(True, "bfloat16"), (False, None)])
def test_autocast_that_a_library_switches_on_within_the_model_is_seen(
    run_probed: RunProgram, tmp_path: Path, enabled: bool, dtype: str | None
) -> None:
    done = run_probed(_WITHIN.format(enabled=enabled))
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    assert facts["autocast_dtype"] == dtype
    assert facts["notes"] == []


_PREPARED = """
import torch
from torch.utils.data import DataLoader, TensorDataset
class Prepared(DataLoader):
    pass
def prepare(loader):
    return Prepared(loader.dataset, batch_sampler=loader.batch_sampler)
data = TensorDataset(torch.randn(64, 4))
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train = DataLoader(data, batch_size=8, shuffle=True)
test = DataLoader(data, batch_size=32)
listed = DataLoader(data, batch_sampler=[[0, 1], [2, 3]])
train, test = prepare(train), prepare(test)
for (x,) in train:
    model(x).sum().backward()
    optimizer.step()
"""


def test_a_loader_that_a_library_makes_in_the_place_of_the_program_s_is_that_one(
    run_probed: RunProgram, tmp_path: Path
) -> None:
    done = run_probed(_PREPARED)
    assert done.returncode == 0, done.stderr
    (facts,) = read_processes(tmp_path / "probe").values()
    made = [line for line, text in enumerate(_PREPARED.splitlines(), start=1) if "= DataLoader(" in text]
    assert [loader["line"] for loader in facts["loaders"]] == made
    assert [loader["batch_size"] for loader in facts["loaders"]] == [8, 32, None]
    assert [loader["num_batches"] for loader in facts["loaders"]] == [9, 0, 0]
    assert facts["notes"] == []
