"""The newest call of a model tells an evaluation that keeps graphs, and the batch that is under way."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from hotloop.probe.memory_failure.live_storages import LiveStorages
from hotloop.probe.memory_failure.root_calls import RootCalls


class _Looks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.calls = RootCalls(LiveStorages())
        self.batches: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.calls.began(self, (x,), {})
        self.batches.append(self.calls.batch_under_way(sys._getframe()))
        return x


def test_the_mode_of_the_model_decides_when_the_criterion_runs_out() -> None:
    model = _Looks()
    calls = model.calls
    model(torch.ones(1))
    assert not calls.evaluates
    calls.went_back()
    model.eval()
    model(torch.ones(1))
    assert calls.evaluates, "also after the call"
    model.train()
    model(torch.ones(1))
    assert not calls.evaluates


def test_a_model_that_learns_in_evaluation_mode_does_not_evaluate() -> None:
    model = _Looks().eval()
    model(torch.ones(1))
    model.calls.went_back()
    model(torch.ones(1))
    assert not model.calls.evaluates


def test_a_teacher_or_a_call_without_gradients_says_nothing() -> None:
    model, teacher = _Looks(), nn.Linear(1, 1).eval().requires_grad_(False)
    model(torch.ones(1))
    model.calls.began(teacher, (torch.ones(1),), {})
    with torch.no_grad():
        model.calls.began(nn.Linear(1, 1).eval(), (torch.ones(1),), {})
    assert not model.calls.evaluates


def test_the_batch_is_known_while_the_call_is_under_way() -> None:
    model = _Looks()
    model(torch.ones(1))
    assert model.batches[-1] == {"samples": 1, "tokens": 0, "shape": [1]}
    model({"length": 3, "ids": torch.zeros(8, 20, dtype=torch.long), "labels": torch.zeros(8)})
    assert model.batches[-1] == {"samples": 8, "tokens": 160, "shape": [8, 20]}
    assert model.calls.batch_under_way(sys._getframe()) is None, "its size is among the earlier ones by then"
