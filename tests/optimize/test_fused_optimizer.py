"""fused_optimizer: the same update in one kernel, where the optimizer has one."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.compute.fused_optimizer import knob as optimizer_knob
from hotloop.optimize.catalogue.compute.fused_optimizer.row import FOREACH_ONLY, FusedOptimizer
from hotloop.optimize.optimization import DoesNotApply

from .harness import observation, optimizer

BUSY = {Phase.OPTIMIZER: 0.4, Phase.FORWARD: 0.6}


def changed(cls: Any, keywords: dict[str, Any], implementation: str = "fused") -> dict[str, Any]:
    activation = FusedOptimizer().activation({"implementation": implementation})
    return activation.on_optimizer(cls, dict(keywords))


def trained(cls: Any, keywords: dict[str, Any]) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    made = cls(model.parameters(), **keywords)
    scheduler = torch.optim.lr_scheduler.StepLR(made, 1)
    for _ in range(3):
        model(torch.ones(2, 4)).square().sum().backward()
        made.step()
        scheduler.step()
        made.zero_grad()
    weight: torch.Tensor = model.weight.detach()
    return weight


@pytest.mark.parametrize("cls", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad])
def test_the_update_is_the_same(cls: Any) -> None:
    keywords = changed(cls, {"lr": 0.01})
    assert keywords == {"lr": 0.01, "fused": True}
    torch.testing.assert_close(trained(cls, keywords), trained(cls, {"lr": 0.01}))


@pytest.mark.parametrize("name", sorted(FOREACH_ONLY))
def test_optimizers_without_fused_get_foreach(name: str) -> None:
    cls = getattr(torch.optim, name)
    keywords = changed(cls, {"lr": 0.01})
    assert keywords == {"lr": 0.01, "foreach": True}
    torch.testing.assert_close(trained(cls, keywords), trained(cls, {"lr": 0.01}))


def test_the_program_s_foreach_gives_way_because_both_raise() -> None:
    with pytest.raises(RuntimeError, match=r"`fused` and `foreach` cannot be `True` together"):
        torch.optim.AdamW([torch.ones(1, requires_grad=True)], foreach=True, fused=True)
    assert changed(torch.optim.AdamW, {"foreach": True}) == {"fused": True}


def test_foreach_can_be_asked_for() -> None:
    assert changed(torch.optim.AdamW, {"lr": 1.0}, "foreach") == {"lr": 1.0, "foreach": True}


def test_it_is_seen_to_step() -> None:
    activation = FusedOptimizer().activation({})
    activation.on_torch()
    keywords = activation.on_optimizer(torch.optim.AdamW, {"lr": 0.1})
    assert activation.effect() == (False, "no optimizer stepped")
    weight = torch.ones(2, requires_grad=True)
    made = torch.optim.AdamW([weight], **keywords)
    weight.sum().backward()
    made.step()
    assert activation.effect() == (True, "AdamW steps fused")


def test_an_optimizer_that_steps_plain_is_no_effect() -> None:
    activation = FusedOptimizer().activation({})
    activation.on_torch()
    activation.on_optimizer(torch.optim.AdamW, {})
    weight = torch.ones(2, requires_grad=True)
    made = torch.optim.AdamW([weight])
    weight.sum().backward()
    made.step()
    assert activation.effect() == (False, "AdamW steps plain")


def test_a_program_s_own_optimizer_is_left_alone() -> None:
    class Own(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

    class OwnAdam(torch.optim.AdamW):  # type: ignore[misc]
        pass

    for cls in (Own, OwnAdam):
        activation = FusedOptimizer().activation({})
        assert activation.on_optimizer(cls, {"lr": 0.1}) == {"lr": 0.1}
        assert "not torch's own" in activation.effect()[1]


def test_lbfgs_and_differentiable_ones_are_left_alone() -> None:
    assert changed(torch.optim.LBFGS, {"lr": 0.1}) == {"lr": 0.1}
    assert changed(torch.optim.SGD, {"differentiable": True}) == {"differentiable": True}


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_sparse_gradients_are_left_alone(kind: Any) -> None:
    embedding = kind(4, 2, sparse=True)
    assert changed(torch.optim.SGD, {"lr": 0.1}) == {"lr": 0.1}
    del embedding
    assert changed(torch.optim.SGD, {"lr": 0.1}) == {"lr": 0.1, "fused": True}


def test_the_signature_that_programs_ask_for_is_untouched() -> None:
    FusedOptimizer().activation({}).on_torch()
    assert "fused" in inspect.signature(torch.optim.AdamW).parameters


def test_a_cpu_gradient_scaler_goes_on_working() -> None:
    weight = torch.ones(2, requires_grad=True)
    made = torch.optim.SGD([weight], **changed(torch.optim.SGD, {"lr": 0.1}))
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(weight.sum()).backward()
    scaler.step(made)
    scaler.update()
    torch.testing.assert_close(weight.detach(), torch.full((2,), 0.9))


def test_the_gain_is_bounded_by_the_optimizer() -> None:
    fused, foreach = FusedOptimizer().candidates(observation(BUSY, optimizers=(optimizer(),)))
    assert fused.params == {"implementation": "fused"}
    assert foreach.params == {"implementation": "foreach"}
    assert fused.max_gain == pytest.approx(1 / 0.6)
    assert 1.0 < foreach.prior < fused.prior < 1 / 0.6


@pytest.mark.parametrize(
    ("optimizers", "program", "reason"),
    [
        ((), {}, "no optimizer object"),
        ((optimizer(fused=True),), {}, "fused already"),
        ((optimizer(cls="LBFGS", supports_fused=False),), {}, "LBFGS has neither"),
        ((optimizer(cls="RMSprop", supports_fused=False),), {"device": "cuda"}, "default on CUDA"),
    ],
)
def test_it_does_not_apply(optimizers: Any, program: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        FusedOptimizer().candidates(observation(BUSY, optimizers=optimizers, **program))


def test_a_short_step_is_not_worth_it() -> None:
    with pytest.raises(DoesNotApply, match=r"the optimizer takes 0\.5% of the step"):
        FusedOptimizer().candidates(observation({Phase.OPTIMIZER: 0.005}, optimizers=(optimizer(),)))


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="implementation is 'capturable'; allowed: fused, foreach"):
        FusedOptimizer().validate({"implementation": "capturable"})


@pytest.mark.parametrize(("way", "place"), [("fused", "meta"), ("capturable", "meta"), ("foreach", "cpu")])
def test_a_count_of_steps_lies_where_its_kernel_reads_it(way: str, place: str) -> None:
    """Of each group by itself: a program may have fused or captured one optimizer already."""
    parameter = nn.Parameter(torch.zeros(2, device="meta"))
    optimizer = torch.optim.Adam([parameter])
    optimizer.param_groups[0][way] = True
    optimizer.state[parameter] = {"step": torch.tensor(3.0)}
    optimizer_knob._place_step_counts(optimizer)
    assert optimizer.state[parameter]["step"].device.type == place
