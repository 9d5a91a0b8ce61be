"""zero_grad_none: gradients go, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.observation import Observation
from hotloop.optimize.catalogue.compute.zero_grad_none.activation import GradientsLetGo
from hotloop.optimize.catalogue.compute.zero_grad_none.row import ZeroGradNone
from hotloop.optimize.optimization import DoesNotApply

from .harness import observation, root


def trained(own: Any = None, *, skip: bool = False) -> tuple[list[torch.Tensor], list[bool]]:
    """Return the weights after some steps, and whether gradients were kept; with `skip`, a layer sits out a step."""
    torch.manual_seed(0)
    model = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kept = []
    for number in range(5):
        y = model[0](torch.ones(2, 4))
        (y if skip and number == 2 else model[1](y)).square().sum().backward()
        optimizer.step()
        (own or optimizer).zero_grad(set_to_none=False)
        kept.append(model[0].weight.grad is not None)
    return [parameter.detach().clone() for parameter in model.parameters()], kept


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(first, second) for first, second in zip(one, other, strict=True))


def test_gradients_go_and_the_weights_are_the_same() -> None:
    plain, kept = trained()
    assert all(kept)
    activation = ZeroGradNone().activation({})
    activation.on_torch()
    changed, kept = trained()
    assert not any(kept)
    assert same(plain, changed)
    assert activation.effect() == (True, "5 calls let the gradients of 4 parameters go")


def test_it_is_refused_where_zeros_move_a_parameter() -> None:
    plain, _ = trained(skip=True)
    activation = ZeroGradNone().activation({})
    activation.on_torch()
    changed, kept = trained(skip=True)
    assert same(plain, changed)
    assert kept == [False, False, True, True, True]
    on, evidence = activation.effect()
    assert not on
    assert "2 parameters have no gradient at some steps" in evidence


def test_gradients_in_one_buffer_are_left_alone() -> None:
    activation = ZeroGradNone().activation({})
    activation.on_torch()
    layer, buffer = nn.Linear(2, 2), torch.zeros(6)
    layer.weight.grad, layer.bias.grad = buffer[:4].view(2, 2), buffer[4:]
    torch.optim.SGD(layer.parameters(), lr=0.1).zero_grad(set_to_none=False)
    assert layer.weight.grad is not None
    assert activation.effect() == (False, "gradients that are views of one buffer were left alone")


def test_it_goes_on_and_off() -> None:
    knob = GradientsLetGo(at_once=False)
    knob.on_torch()
    for on in (False, True, False):
        knob.switch(on)
        assert trained()[1] == [not on] * 5
    assert knob.effect()[0]


def seen(folder: Path, text: str) -> Observation:
    (folder / "train.py").write_text(text)
    return observation(roots=(root(code_files=(str(folder / "train.py"),)),))


@pytest.mark.parametrize("call", ["model.zero_grad(False)", "optimizer.zero_grad(set_to_none=False)"])
def test_it_applies_where_the_source_keeps_them(tmp_path: Path, call: str) -> None:
    assert ZeroGradNone().candidates(seen(tmp_path, call))


@pytest.mark.parametrize("call", ["model.zero_grad()", "optimizer.zero_grad(set_to_none=True)", "f(", ""])
def test_it_does_not_apply_elsewhere(tmp_path: Path, call: str) -> None:
    with pytest.raises(DoesNotApply, match="no zero_grad"):
        ZeroGradNone().candidates(seen(tmp_path, call))
