"""conv_bias_off: the bias goes where batch norm takes it away, and what is saved stays as it was."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.compute.conv_bias_off.activation import BiasSkip
from hotloop.optimize.catalogue.compute.conv_bias_off.row import ConvBiasOff
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.record.biased_convolutions import biased_before_norm

from .harness import activate, observation, root


def layers(dim: str = "2d", **norm: Any) -> nn.Sequential:
    conv, batch_norm = getattr(nn, f"Conv{dim}"), getattr(nn, f"BatchNorm{dim}")
    torch.manual_seed(0)
    return nn.Sequential(
        conv(3, 8, 3), batch_norm(8, **norm), nn.ReLU(), conv(8, 8, 3), batch_norm(8, **norm), nn.Flatten()
    )


class Net(nn.Module):
    """Registers its layers in another order than it runs them."""

    def __init__(self, *, leaks: bool = False, activated: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.other = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.last = nn.BatchNorm2d(8), nn.BatchNorm2d(8)
        self.leaks, self.activated = leaks, activated

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.conv(x)
        y = self.norm(torch.relu(h) if self.activated else h).relu()
        y = self.last(self.other(y).relu())
        return y + h if self.leaks else y


def batch(dim: str = "2d") -> torch.Tensor:
    return torch.randn(4, 3, *(9,) * int(dim[0]), generator=torch.Generator().manual_seed(1))


def trained(model: nn.Module, dim: str = "2d", steps: int = 6) -> list[torch.Tensor]:
    """Return losses, and the output of an evaluation."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(batch(dim)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    model.eval()
    with torch.no_grad():
        losses.append(model(batch(dim)))
    model.train()
    return losses


@pytest.mark.parametrize("dim", ["1d", "2d", "3d"])
@pytest.mark.parametrize("norm", [{}, {"momentum": None}, {"track_running_stats": False}])
def test_it_learns_and_evaluates_the_same(dim: str, norm: dict[str, Any]) -> None:
    plain = trained(layers(dim, **norm), dim)
    model = layers(dim, **norm)
    names = list(model.state_dict())
    activation = ConvBiasOff().activation({})
    activate(activation, model)
    for one, other in zip(plain, trained(model, dim), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    on, evidence = activation.effect()
    assert on, evidence
    assert re.search(r"\b(8|10) calls counted", evidence)  # without running statistics the evaluation, too
    assert list(model.state_dict()) == names


def test_the_biases_of_what_is_saved_fit_the_plain_model() -> None:
    model, activation = layers(), BiasSkip(at_once=True)
    activate(activation, model)
    trained(model)
    model.eval()
    loaded = layers()
    loaded.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(loaded.eval()(batch()), model(batch()))
    bias = model[0].bias
    assert bias.grad is not None
    assert not bias.grad.any()
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    assert type(again[0]) is nn.Conv2d


def test_the_order_is_that_of_execution() -> None:
    model, activation = Net(), BiasSkip(at_once=True)
    activate(activation, model)
    for one, other in zip(trained(Net()), trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    on, evidence = activation.effect()
    assert on, evidence
    assert "4 calls counted" in evidence  # of conv and norm; an activation stands between the others


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Net(leaks=True), "its outputs differ"),
        (Net(activated=True), "directly followed by batch norm"),
        (nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)), "directly followed"),
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8)), "directly followed"),
    ],
)
def test_what_counts_is_left(model: nn.Module, reason: str) -> None:
    plain, activation = copy.deepcopy(model), BiasSkip(at_once=True)
    activate(activation, model)
    for one, other in zip(trained(plain), trained(model), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    on, evidence = activation.effect()
    assert not on
    assert reason in evidence


def test_frozen_batch_norm_keeps_its_bias() -> None:
    """Fine-tuning with the norms in evaluation mode: there the bias counts."""
    model, activation = layers(), BiasSkip(at_once=True)
    for module in model:
        module.train(not isinstance(module, nn.BatchNorm2d))
    plain = copy.deepcopy(model)
    activate(activation, model)
    for _ in range(3):
        torch.testing.assert_close(plain(batch()), model(batch()), rtol=0, atol=0)
    on, evidence = activation.effect()
    assert not on
    assert "its batch norm is in evaluation mode" in evidence
    # One that is frozen later gets its bias from then on.
    trained_first, activation = layers(), BiasSkip(at_once=True)
    activate(activation, trained_first)
    trained(trained_first)
    assert activation.effect()[0]
    trained_first[1].eval()
    reference = copy.deepcopy(trained_first)
    torch.testing.assert_close(trained_first(batch()), reference(batch()), rtol=1e-4, atol=1e-5)


def test_a_shared_convolution_is_left() -> None:
    conv = nn.Conv2d(3, 3, 3, padding=1)
    model, activation = nn.Sequential(conv, nn.BatchNorm2d(3), conv, nn.ReLU()), BiasSkip(at_once=True)
    activate(activation, model)
    for _ in range(3):
        model(batch()).sum().backward()
    assert activation.effect() == (False, "left: 0: it, or its batch norm, runs more than once in a forward")


def test_it_goes_on_and_off() -> None:
    model, knob = layers(), BiasSkip(at_once=False)
    own = nn.Conv2d._conv_forward
    activate(knob, model)
    trained(model)
    assert not knob.effect()[0]
    knob.switch(True)
    assert nn.Conv2d._conv_forward is not own
    trained(model)
    knob.switch(False)
    assert nn.Conv2d._conv_forward is own
    assert knob.effect()[0]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"biased_before_norm": 0}, "no convolution with a bias"),
        ({"biased_before_norm": None}, "observe again"),
        ({"biased_before_norm": 2, "training": False}, "trains in evaluation mode"),
        ({"biased_before_norm": 2, "compiled": True}, "compiles its model"),
    ],
)
def test_where_it_does_not_apply(facts: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        ConvBiasOff().candidates(observation(roots=(root(**facts),)))


def test_where_it_applies() -> None:
    assert biased_before_norm(layers()) == 2
    assert biased_before_norm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(4))) == 0
    assert ConvBiasOff().candidates(observation(roots=(root(biased_before_norm=2),)))
