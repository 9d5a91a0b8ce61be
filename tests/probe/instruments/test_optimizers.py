"""Optimizers are timed on copies: nothing of the program's own is touched."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hotloop.probe.instruments.optimizers import Optimizers
from hotloop.probe.probe import Probe


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2))


def _step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(4, 8)).square().mean().backward()
    optimizer.step()


def _looked_at(probe: Probe, model: nn.Module, optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    instrument = Optimizers(probe)
    instrument.start()
    _step(model, optimizer)
    return instrument.stop()


@pytest.mark.parametrize("cls", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad])
def test_both_ways_are_timed_and_the_program_goes_on_as_before(probe: Probe, cls: Any) -> None:
    trained = []
    for looks in (False, True):
        model = _model()
        optimizer = cls(model.parameters(), lr=0.1)
        if looks:
            (row,) = _looked_at(probe, model, optimizer)
            assert (row["cls"], row["num_parameters"]) == (cls.__name__, 90)
            assert row["now_s"] > 0.0
            assert row["fused_s"] > 0.0
        else:
            _step(model, optimizer)
        _step(model, optimizer)
        trained.append((list(model.parameters()), optimizer.state_dict()["param_groups"]))
    (plain, groups), (looked, same) = trained
    assert all(torch.equal(one, other) for one, other in zip(plain, looked, strict=True))
    assert groups == same


def test_hooks_and_random_numbers_of_the_program_are_not_touched(probe: Probe) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    model, calls = _model(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = register_optimizer_step_post_hook(lambda *_: calls.append(1))
    before = torch.get_rng_state()
    try:
        assert _looked_at(probe, model, optimizer)
    finally:
        handle.remove()
    assert calls == [1]
    assert torch.equal(before, torch.get_rng_state())


def test_what_is_fused_or_refuses_it_is_not_tried(probe: Probe) -> None:
    model = _model()
    assert _looked_at(probe, model, torch.optim.AdamW(model.parameters(), fused=True)) == []
    assert _looked_at(probe, model, torch.optim.RMSprop(model.parameters())) == []
    rows = nn.EmbeddingBag(9, 2, sparse=True)
    optimizer = torch.optim.SGD(rows.parameters(), lr=0.1)
    instrument = Optimizers(probe)
    instrument.start()
    rows(torch.tensor([[1, 2]])).sum().backward()
    optimizer.step()
    assert instrument.stop() == []
