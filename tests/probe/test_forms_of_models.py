"""Models that are not plain modules any more when they are called: each is found, however it was made."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hotloop.observe.decode.processes import read_processes
from hotloop.observe.decode.spans import timelines
from hotloop.probe.record.events import Kind

from .conftest import RunProgram

CALLS = 200
WRAPPED = """
import torch
from torch import nn
class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def forward(self, time, x):
        return self.model(x) * time
class Outer(Wrapper):
    def forward(self, time, x):
        return self.model(time, x)
def solved(model, x, turns):
    wrapped = MADE(model)
    for turn in range(turns):
        x = wrapped(turn * 0.1, x)
    return x
one, other, before, after = (nn.Sequential(nn.Linear(4, 4)) for _ in range(4))
optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)
for _ in range(STEPS):
    x = torch.ones(2, 4)
    FORWARD
    x.sum().backward()
    optimizer.step()
"""
SOLVED = {
    "alone": ("Wrapper", "x = solved(one, x, 3)", 3),
    "twice": ("(lambda model: Outer(Wrapper(model)))", "x = solved(one, x, 3)", 3),
    "two": ("Wrapper", "x = solved(other, solved(one, x, 3), 3)", 6),
    "before a decoder": ("Wrapper", "x = after(solved(one, x, 3))", 4),
    "often, behind an encoder": ("Wrapper", "x = solved(one, before(x), 100)", 101),
}
FORMS = """
import torch, warnings
from torch import nn
from torch.fx.experimental.optimization import fuse
warnings.simplefilter("ignore")
def net():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()
images = torch.randn(2, 3, 8, 8)
flat = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)).eval()
forms = {
    "frozen": lambda: torch.jit.freeze(torch.jit.script(net())),
    "fused": lambda: fuse(net()),
    "quantized": lambda: torch.ao.quantization.quantize_dynamic(flat, {nn.Linear}),
}
with torch.inference_mode():
    model = forms[FORM]()
    for _ in range(200):
        model(images)
"""
SYMBOLIC = """
import torch
from torch import nn
class Sizes:
    shape, dtype = (None, 4), "float32"
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(torch.ones(83, 4) if isinstance(x, Sizes) else x)
model, second = Model(), Model()
optimizer = torch.optim.SGD([*model.parameters(), *second.parameters()], lr=0.1)
model(Sizes())
second([Sizes()][0])
for _ in range(10):
    second(model(torch.ones(2, 4))).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_each_form_is_found(run_probed: RunProgram, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for form in ("frozen", "fused", "quantized"):
        done = run_probed(f"FORM = {form!r}\n{FORMS}")
        assert done.returncode == 0, done.stderr
        known = timelines(tmp_path / "probe", {})
        seen[form] = sum(span.kind is Kind.EVALUATE for each in known.values() for span in each.spans)
        for path in (tmp_path / "probe").iterdir():
            path.unlink()
    assert seen["fused"] == seen["quantized"] == CALLS
    assert seen["frozen"] > CALLS / 2, "what a scripted module without parameters is takes some calls to tell"


@pytest.mark.parametrize("case", SOLVED)
def test_what_is_made_anew_around_the_model_at_each_step_hides_no_forward(
    run_probed: RunProgram, tmp_path: Path, case: str
) -> None:
    """Solvers of neural ODEs wrap what they integrate: four fifths of a step of torchdiffeq were "your own code"."""
    steps, (made, forward, calls) = 20, SOLVED[case]
    program = WRAPPED.replace("STEPS", str(steps)).replace("MADE", made).replace("FORWARD", forward)
    done = run_probed(program)
    assert done.returncode == 0, done.stderr
    known = timelines(tmp_path / "probe", {})
    forwards = sum(span.kind is Kind.FORWARD for each in known.values() for span in each.spans)
    assert calls * (steps - 3) <= forwards <= calls * steps


def test_a_call_that_builds_a_model_is_none_of_its_forwards(run_probed: RunProgram, tmp_path: Path) -> None:
    """Keras calls a model with what stands for a tensor of unknown size; hotloop could not read its own record then."""
    done = run_probed(SYMBOLIC)
    assert done.returncode == 0, done.stderr
    known = timelines(tmp_path / "probe", {})
    assert sum(span.kind is Kind.FORWARD for each in known.values() for span in each.spans) == 20
    (facts,) = read_processes(tmp_path / "probe").values()
    assert [root["input_shapes"] for root in facts["roots"]] == [[[2, 4]]] * 2


STAGES = """
import torch
from torch import nn
class Distillation(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher, self.student = teacher, student
    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)
        return (self.student(x) - wanted).square().mean()
def train(model, parameters):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
teacher, student = nn.Linear(4, 4), nn.Linear(4, 4)
train(teacher, teacher.parameters())
train(Distillation(teacher, student), student.parameters())
"""


def test_the_model_of_a_later_stage_is_found(run_probed: RunProgram, tmp_path: Path) -> None:
    """The teacher is still called then, without gradients: its calls are not what the steps are made of."""
    done = run_probed(STAGES)
    assert done.returncode == 0, done.stderr
    known = timelines(tmp_path / "probe", {})
    forwards = sum(span.kind is Kind.FORWARD for each in known.values() for span in each.spans)
    assert 30 + 30 - 5 <= forwards <= 60
