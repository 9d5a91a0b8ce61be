"""frozen_inference on models of several shapes: what is folded, what is left, and that outputs stay."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor, nn

from hotloop.launch.environment import probed
from hotloop.model.observation import Anchor, Observation
from hotloop.model.optimization import Candidate
from hotloop.optimize.catalogue.compute.frozen_inference.row import FrozenInference
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.activation.activation import Activation
from hotloop.probe.process.config import ProbeConfig
from hotloop.tune.plan.orders import activation_orders

from .harness import observation, root

NORMS = {"Conv2d": 4, "BatchNorm2d": 4}
MODES: list[Callable[[], AbstractContextManager[Any]]] = [torch.no_grad, torch.inference_mode, nullcontext]


class Branches(nn.Module):
    """Convolutions first, then their norms: the order of construction says nothing of what follows what."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 8, 3, bias=False), nn.Conv2d(3, 8, 3)
        self.bn1, self.bn2 = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.head, self.norm = nn.Linear(8, 6), nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> Tensor:
        one, two = self.conv1(x), self.conv2(x)
        y = torch.relu(self.bn1(one)) + self.bn2(two)
        return torch.as_tensor(self.norm(self.head(y.mean((2, 3)))))


class SkipsNorm(nn.Module):
    """The convolution's output is used beside its norm too, which a fold would spoil."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return torch.as_tensor(self.bn(y) + y)


class CallsTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.bn(self.conv(self.bn(self.conv(x)))))


def sequential() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
        nn.Sequential(nn.ConvTranspose2d(8, 4, 3), nn.BatchNorm2d(4, affine=False)),
        nn.ReLU(), nn.BatchNorm2d(4),
    )  # fmt: skip


def trained(model: nn.Module) -> nn.Module:
    """Give the norms statistics that a training would have left."""
    torch.manual_seed(0)
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.3, 3.0)
            if norm.weight is not None:
                norm.weight.data.uniform_(0.3, 3.0)
    return model.eval()


def answers(activation: Activation, model: nn.Module, num: int) -> Iterator[Tensor]:
    """Yield what a program that infers is given, call by call, as the hook points do it."""
    activation.on_root(model)
    context = activation.forward_context(model)
    images = torch.Generator().manual_seed(1)
    for _ in range(num):
        args, kwargs = activation.on_forward_inputs(model, (torch.randn(4, 3, 8, 8, generator=images),), {})
        with context or nullcontext():
            output = model(*args, **kwargs)
        yield activation.on_forward_output(model, output)


def plain(model: nn.Module, num: int) -> list[Tensor]:
    images = torch.Generator().manual_seed(1)
    with torch.no_grad():
        return [model(torch.randn(4, 3, 8, 8, generator=images)) for _ in range(num)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("make", "num"), [(Branches, 3), (sequential, 2)])
def test_norms_are_folded_and_outputs_stay(
    make: Callable[[], nn.Module], num: int, mode: Callable[[], AbstractContextManager[Any]]
) -> None:
    model = trained(make())
    expected = plain(model, 5)
    activation = FrozenInference().activation({"fold": True})
    with mode():
        seen = list(answers(activation, model, 5))
    for one, other in zip(expected, seen, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)
    assert sum(isinstance(each, nn.Identity) for each in model.modules()) == num
    on, evidence = activation.effect()
    assert on, evidence
    assert "outputs within" in evidence
    assert "3 forwards, 3 forwards under inference mode" in evidence


@pytest.mark.parametrize("make", [SkipsNorm, CallsTwice])
def test_what_would_change_is_left_alone(make: Callable[[], nn.Module]) -> None:
    model = trained(make())
    expected = plain(model, 4)
    activation = FrozenInference().activation({"fold": True})
    with torch.no_grad():
        seen = list(answers(activation, model, 4))
    assert all(torch.equal(one, other) for one, other in zip(expected, seen, strict=True))
    on, evidence = activation.effect()
    assert not on
    assert "more than rounding" in evidence or "no batch norm was seen" in evidence


def test_a_model_that_is_trained_after_all_has_its_own_layers_back() -> None:
    model = trained(Branches())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    activation = FrozenInference().activation({"fold": True})
    with torch.no_grad():
        assert list(answers(activation, model, 4))
    model.train()
    activation.on_forward_inputs(model, (), {})
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert "training mode" in activation.effect()[1]


def test_it_is_switched_on_and_off() -> None:
    model = trained(sequential())
    names = list(model.state_dict())
    knob = FrozenInference().knob({"fold": True})
    with torch.no_grad():
        assert list(answers(knob, model, 3))
        assert list(model.state_dict()) == names
        knob.switch(True)
        knob.on_forward_inputs(model, (), {})
        assert any(isinstance(each, nn.Identity) for each in model.modules())
        knob.switch(False)
    assert list(model.state_dict()) == names
    assert knob.effect()[0]


def test_outputs_may_be_changed_in_place_and_pickled() -> None:
    model = trained(Branches())
    activation = FrozenInference().activation({})
    with torch.no_grad():
        output = list(answers(activation, model, 2))[-1]
    output.mul_(2)
    torch.save(output, io.BytesIO())
    assert activation.effect() == (True, "2 forwards under inference mode")


def inferring(**changes: Any) -> Observation:
    plain_root = {"layer_counts": NORMS, "training": False, "grad_mode": "no_grad"}
    program = observation(roots=(root(**{**plain_root, **changes}),))
    return msgspec.structs.replace(program, anchor=Anchor("forward", 0))


def test_candidates_fold_where_there_are_norms() -> None:
    assert [one.params for one in FrozenInference().candidates(inferring())] == [{"fold": True}, {}]
    plain_layers = FrozenInference().candidates(inferring(layer_counts={"Linear": 3}))
    assert [one.params for one in plain_layers] == [{}]


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (msgspec.structs.replace(inferring(), anchor=Anchor("optimizer", 0)), "the program trains"),
        (inferring(training=True, grad_mode="inference"), "training mode"),
        (inferring(compiled=True), "compiles its model"),
        (inferring(layer_counts={"Linear": 3}, grad_mode="inference"), "no batch norm"),
        (
            msgspec.structs.replace(
                inferring(), run=msgspec.structs.replace(inferring().run, num_checkpoints=2)
            ),
            "saves its model",
        ),
    ],
)
def test_it_is_refused_with_a_reason(seen: Observation, why: str) -> None:
    with pytest.raises(DoesNotApply, match=why):
        FrozenInference().candidates(seen)


FOLDS = """
import torch
from torch import nn
from torch.fx import symbolic_trace
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2)).eval()
symbolic_trace(model)  # it puts back what the class of modules showed before
with torch.no_grad():
    for _ in range(12):
        model(torch.randn(4, 3, 8, 8))
print(isinstance(model[1], nn.Identity))
"""


@pytest.mark.parametrize("infers", [True, False])
@pytest.mark.slow
def test_a_plan_acts_on_forwards_without_gradients_where_nothing_is_trained(
    infers: bool, tmp_path: Path
) -> None:
    step = Candidate(name="frozen_inference", params={"fold": True})
    config = ProbeConfig(
        folder=None, activations=tuple(activation_orders((step,))), infers=infers, record=False
    )
    done = subprocess.run(
        [sys.executable, "-c", FOLDS],
        env=probed(os.environ, config.inline()), cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == str(infers), "evaluations of a program that trains are none of its business"
