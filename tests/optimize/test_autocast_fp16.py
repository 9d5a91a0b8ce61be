"""autocast_fp16: the forward in float16; gradients are scaled inside the model, and true everywhere else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.optimize.catalogue.precision.autocast_fp16.activation import ScaledAutocast
from hotloop.optimize.catalogue.precision.autocast_fp16.loss_scale import INITIAL, LossScale
from hotloop.optimize.catalogue.precision.autocast_fp16.row import AutocastFp16
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, observation, optimizer, root


class Net(nn.Module):  # type: ignore[misc]
    """Two layers; returns what it computed in between too, which the output was made of."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.first(pixels).relu()
        return hidden, self.second(hidden)


@pytest.fixture
def scaled() -> Any:
    """An activation whose hooks around optimizer steps end with the test."""
    from torch.optim import optimizer as module

    before = dict(module._global_optimizer_pre_hooks), dict(module._global_optimizer_post_hooks)
    activation = ScaledAutocast()
    activation.on_torch()
    yield activation
    for hooks, kept in zip(
        (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks), before, strict=True
    ):
        for number in set(hooks) - set(kept):
            del hooks[number]


def _gradients(model: nn.Module, batch: torch.Tensor, factor: float = 1.0) -> list[torch.Tensor]:
    hidden, output = model(batch)
    loss = (output.square().mean() + hidden.mean()) * factor
    loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_the_program_sees_true_gradients(scaled: ScaledAutocast) -> None:
    """At parameters and at inputs, through an output that another output was made of."""
    torch.manual_seed(0)
    plain = Net()
    model = copy.deepcopy(plain)
    activate(scaled, model)
    batch = torch.randn(32, 8)
    there, here = batch.clone().requires_grad_(), batch.clone().requires_grad_()
    for true, seen in zip(_gradients(plain, there), _gradients(model, here), strict=True):
        torch.testing.assert_close(seen, true, rtol=2e-2, atol=1e-4)
    torch.testing.assert_close(here.grad, there.grad, rtol=2e-2, atol=1e-4)


def test_gradients_that_would_vanish_in_float16_arrive(scaled: ScaledAutocast) -> None:
    """The smallest number of float16 is 6e-8; unscaled, the first layer's gradient is zero."""
    torch.manual_seed(0)
    model, factor = Net(), 2e-7
    batch = torch.randn(32, 8)
    true = _gradients(copy.deepcopy(model), batch, factor)
    unscaled = copy.deepcopy(model)
    with torch.autocast("cpu", dtype=torch.float16):
        lost = _gradients(unscaled, batch, factor)
    activate(scaled, model)
    seen = _gradients(model, batch, factor)
    torch.testing.assert_close(seen[0], true[0], rtol=0.05, atol=1e-11)
    error = (lost[0] - true[0]).norm() / true[0].norm()
    assert error > 0.2, "the case would show nothing"


def test_a_step_that_overflows_is_left_out(scaled: ScaledAutocast) -> None:
    """Neither weights nor the optimizer's state move, what reads gradients later finds them, and the scale halves."""
    model = Net()
    activate(scaled, model)
    adam = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
    _gradients(model, torch.randn(4, 8))
    adam.step()
    steps = [float(adam.state[one]["step"]) for one in model.parameters()]
    weights = [one.detach().clone() for one in model.parameters()]
    adam.zero_grad()
    _gradients(model, torch.randn(4, 8), factor=1e9)
    adam.step()
    assert [float(adam.state[one]["step"]) for one in model.parameters()] == steps
    assert all(map(torch.equal, weights, model.parameters()))
    assert not all(bool(one.grad.isfinite().all()) for one in model.parameters())
    on, evidence = scaled.effect()
    assert f"gradient scale {INITIAL / 2:g}, 1 of 2 steps left out" in evidence
    assert on
    adam.zero_grad()
    _gradients(model, torch.randn(4, 8))
    adam.step()
    assert not any(map(torch.equal, weights, model.parameters()))


def test_parameters_that_learn_later_see_true_gradients(scaled: ScaledAutocast) -> None:
    """Thawed, frozen and thawed again, added or replaced after the first forward."""
    torch.manual_seed(0)
    model = Net()
    model.first.requires_grad_(False)
    activate(scaled, model)
    batch = torch.randn(32, 8)
    model(batch)[1].sum().backward()
    model.first.requires_grad_(True)
    model.second = nn.Linear(16, 4)
    plain = Net()
    plain.load_state_dict(model.state_dict())
    for _ in range(2):
        model.zero_grad()
        plain.zero_grad()
        for true, seen in zip(_gradients(plain, batch), _gradients(model, batch), strict=True):
            torch.testing.assert_close(seen, true, rtol=2e-2, atol=1e-4)
        model.second.requires_grad_(False).requires_grad_(True)


def test_an_overflow_reaches_nothing_before_the_model(scaled: ScaledAutocast) -> None:
    """A learned prompt is no parameter of the model, but its gradient comes through it."""
    model, prompt = Net(), nn.Parameter(torch.randn(4, 8))
    activate(scaled, model)
    optimizers = [torch.optim.SGD(one, 0.1) for one in ([prompt], model.parameters())]
    before = prompt.detach().clone()
    _gradients(model, prompt * 1.0, factor=1e9)
    for one in optimizers:
        one.step()
    assert torch.equal(prompt, before)
    assert "2 of 2 steps left out" in scaled.effect()[1]


def test_two_optimizers_and_a_model_in_another_s_loss(scaled: ScaledAutocast) -> None:
    """A generator learns through a discriminator: its gradient leaves the one and enters the other."""
    torch.manual_seed(0)
    generator, critic = nn.Linear(3, 8), Net()
    plain = copy.deepcopy(generator), copy.deepcopy(critic)
    for model in (generator, critic):
        activate(scaled, model)
    noise = torch.randn(16, 3)
    _gradients(critic, generator(noise))
    _gradients(plain[1], plain[0](noise))
    torch.testing.assert_close(generator.weight.grad, plain[0].weight.grad, rtol=3e-2, atol=1e-4)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in (generator, critic)]
    for one in optimizers:
        one.step()
    assert "0 of 2 steps left out" in scaled.effect()[1]


def test_accumulation_and_clipping(scaled: ScaledAutocast) -> None:
    """The norm that clipping sees is the true one, of two backwards."""
    torch.manual_seed(0)
    model = Net()
    plain = copy.deepcopy(model)
    activate(scaled, model)
    batch = torch.randn(16, 8)
    for net in (model, plain):
        for part in batch.split(8):
            _gradients(net, part, 0.5)
    seen, true = (torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1) for net in (model, plain))
    torch.testing.assert_close(seen, true, rtol=1e-2, atol=1e-5)


def test_the_scale_grows_after_good_steps() -> None:
    """Up to its limit."""
    scale, weight = LossScale(), nn.Parameter(torch.ones(2))
    scale.watch([weight])
    sgd = torch.optim.SGD([weight], 0.0)
    weight.grad = torch.zeros(2)
    for _ in range(500):
        scale.before_step(sgd)
    assert scale.value == 2 * INITIAL


def test_models_in_double_precision_are_left_alone(scaled: ScaledAutocast) -> None:
    """Their gradients are neither scaled nor unscaled."""
    model = Net().double()
    plain = copy.deepcopy(model)
    activate(scaled, model)
    batch = torch.randn(4, 8, dtype=torch.float64)
    assert all(map(torch.equal, _gradients(model, batch), _gradients(plain, batch)))
    assert scaled.effect() == (False, "a Net in double precision was left alone")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "on the CPU"),
        ({"device": "cuda"}, "no optimizer of torch.optim"),
        ({"device": "cuda", "optimizers": (optimizer(cls="LBFGS"),)}, "LBFGS"),
        ({"device": "cuda", "optimizers": (optimizer(),), "double_backward": True}, "twice"),
        ({"device": "cuda", "optimizers": (optimizer(),), "distributed": "fsdp"}, "FSDP"),
        ({"device": "cuda", "roots": (root(dtypes=("float64",)),)}, "meant"),
        ({"autocast_dtype": "float16"}, "already"),
    ],
)
def test_where_it_does_not_apply(facts: dict[str, Any], reason: str) -> None:
    """Each is told its own reason."""
    with pytest.raises(DoesNotApply, match=reason):
        AutocastFp16().candidates(observation(**facts))


def test_devices_without_bfloat16_expect_more_of_it() -> None:
    """A V100 computes bfloat16 without tensor cores; on an A100 bfloat16 comes first."""

    def prior(name: str) -> float:
        machine = {"accelerators": [{"name": name}]}
        (one,) = AutocastFp16().candidates(
            observation(device="cuda", optimizers=(optimizer(),), machine=machine)
        )
        return one.prior

    assert prior("Tesla V100-SXM2-16GB") > prior("NVIDIA A100-SXM4-40GB")
