"""A tensor that keeps the graphs of earlier steps is told from those of the step under way."""

from __future__ import annotations

import sys

import torch
from torch import nn

from hotloop.probe.instruments.dispatch_mode import operator_mode
from hotloop.probe.memory_failure.account import held_now, walked_tensors
from hotloop.probe.memory_failure.graph_keepers import graph_keepers
from hotloop.probe.memory_failure.holders import holders, named_values
from hotloop.probe.memory_failure.live_storages import LiveStorages


def _now() -> int:
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


def test_a_running_total_keeps_earlier_steps() -> None:
    model, total = nn.Linear(4, 4), torch.zeros(())
    began = 0
    for _ in range(5):
        began = _now()
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        total = total + loss
    assert graph_keepers([loss, total], began) == [total]
    assert graph_keepers([loss, total], 0) == [], "where steps begin is not known"


def test_of_a_state_and_what_is_computed_from_it_the_state_is_told() -> None:
    cell, state = nn.Linear(4, 4), torch.zeros(2, 4)
    for _ in range(4):
        began = _now()
        state = cell(state)
        out = state.pow(2)
        loss = out.mean()
    kept = graph_keepers([loss, out, state], began)
    assert [each is state for each in kept] == [True]


def test_a_keeper_is_named_before_larger_holders() -> None:
    model, total, big = nn.Linear(4, 4), torch.zeros(()), [torch.zeros(1 << 16)]
    for _ in range(5):
        began = _now()
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        total = total + loss
    rows = {row["name"]: row for row in holders(named_values(sys._getframe()), (), began)}
    assert next(iter(rows)) == "total"
    assert rows["total"]["keeps_graph"]
    assert "loss" not in rows
    assert not rows["big"]["keeps_graph"]
    assert len(big) == 1


def _leak(storages: LiveStorages, steps: int) -> list[torch.Tensor]:
    def run(func, args, kwargs):  # type: ignore[no-untyped-def]
        out = func(*args, **kwargs)
        storages.saw(out, str(func), args)
        return out

    model, kept = nn.Sequential(nn.Linear(64, 512), nn.Tanh()), []
    with operator_mode(run):
        for _ in range(steps):
            model(torch.ones(100, 64)).sum().backward()
            kept.append(model(torch.ones(100, 64)))
    return kept


def test_a_program_s_own_steps_tell_what_is_of_an_earlier_one() -> None:
    storages = LiveStorages()
    kept = _leak(storages, 6)
    by_class = held_now("cpu", storages, walked_tensors())["by_class"]
    assert storages.passes_of_a_step == 1
    size = kept[0].nbytes
    assert by_class["earlier_steps"] >= 4 * size
    assert by_class["activations"] <= 3 * size


def test_before_some_passes_are_over_nothing_is_known_of_a_step() -> None:
    storages = LiveStorages()
    kept = _leak(storages, 2)
    assert storages.passes_of_a_step == 3
    assert "earlier_steps" not in held_now("cpu", storages, walked_tensors())["by_class"]
    assert len(kept) == 2
