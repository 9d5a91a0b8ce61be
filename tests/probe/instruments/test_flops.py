"""FLOPs of steps that can be counted by hand, and torch's own counter beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hotloop.probe.instruments.flops import Flops
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig

Step = Callable[[], Any]


def _counted(step: Step) -> dict[str, Any]:
    flops = Flops(Probe(ProbeConfig(folder=None)))
    flops.start()
    try:
        step()
    finally:
        value: dict[str, Any] = flops.stop()
    return value


def _sum(value: dict[str, Any]) -> int:
    return sum(one["flop"] for one in value["products"])


def _trained(model: nn.Module, *inputs: torch.Tensor) -> Step:
    def step() -> None:
        output = model(*inputs)
        (output[0] if isinstance(output, tuple) else output).float().sum().backward()

    return step


def _layers() -> dict[str, Step]:
    conv = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3, groups=2)
    )
    attention = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return {
        "convolutions": _trained(conv, torch.rand(2, 3, 17, 17)),
        "attention": _trained(attention, torch.rand(2, 9, 32)),
        "bilinear": _trained(nn.Linear(5, 6), torch.rand(2, 3, 4, 5)),
    }


def test_a_linear_layer_by_hand() -> None:
    value = _counted(_trained(nn.Sequential(nn.Linear(10, 20), nn.Linear(20, 5)), torch.rand(8, 10)))
    forward = 2 * 8 * (10 * 20 + 20 * 5)
    weights, inputs = forward, 2 * 8 * 20 * 5  # the first layer's input needs no gradient
    assert _sum(value) == forward + weights + inputs
    assert value["unknown"] == []
    assert {one["dtype"] for one in value["products"]} == {"float32"}


@pytest.mark.parametrize("name", ["convolutions", "attention", "bilinear"])
def test_it_agrees_with_torchs_own_counter(name: str) -> None:
    step = _layers()[name]
    with FlopCounterMode(display=False) as counter:
        step()
    assert _sum(_counted(step)) == counter.get_total_flops() > 0


def test_a_recurrent_layer_that_torchs_counter_knows_nothing_of() -> None:
    layer = nn.LSTM(16, 24, batch_first=True)
    weights = 4 * 24 * (16 + 24)
    forward = 2 * 3 * 7 * weights
    value = _counted(_trained(layer, torch.rand(3, 7, 16)))
    assert _sum(value) == pytest.approx(3 * forward, rel=0.2), "less the gradient of what needs none"


def test_inference_mode_hides_no_product() -> None:
    model, x = nn.Linear(10, 20), torch.rand(8, 10)

    def step() -> None:
        with torch.inference_mode():
            model(x)

    assert _sum(_counted(step)) == 2 * 8 * 10 * 20


def test_what_is_computed_stays_the_same_and_nothing_is_left_behind() -> None:
    model, x = nn.Linear(10, 20), torch.rand(8, 10)
    before = model(x)
    after: list[torch.Tensor] = []
    _counted(lambda: after.append(model(x)))
    assert torch.equal(before, after[0])
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_mode_of_the_programs_own_stays_where_it_is() -> None:
    flops = Flops(Probe(ProbeConfig(folder=None)))
    flops.start()
    with FlopCounterMode(display=False) as own:
        nn.Linear(10, 20)(torch.rand(8, 10))
        value = flops.stop()
        nn.Linear(10, 20)(torch.rand(8, 10))
    assert _sum(value) == 2 * 8 * 10 * 20
    assert own.get_total_flops() == 2 * _sum(value)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_formula_that_fails_is_named_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> int:
        raise ValueError("no such shape")

    monkeypatch.setitem(torch.utils.flop_counter.flop_registry, torch.ops.aten.addmm, broken)
    assert _counted(_trained(nn.Linear(3, 4), torch.rand(2, 3)))["unknown"] == ["aten::addmm"]
