"""A forward in evaluation mode is told from a training one by its frames."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from hotloop.probe.memory_failure.evaluates import batch_under_way, evaluates


class _Looks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[bool] = []
        self.batches: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.seen.append(evaluates(sys._getframe()))
        self.batches.append(batch_under_way(sys._getframe()))
        return x


def test_the_outermost_module_decides() -> None:
    inner = _Looks()
    model = nn.Sequential(inner)
    model(torch.ones(1))
    model.eval()
    model(torch.ones(1))
    model.train()
    inner.eval()
    model(torch.ones(1))
    assert inner.seen == [False, True, False]
    assert not evaluates(sys._getframe())
    assert inner.batches[-1] == {"samples": 1, "tokens": 0, "shape": [1]}
    model(torch.zeros(8, 20, dtype=torch.long))
    assert inner.batches[-1] == {"samples": 8, "tokens": 160, "shape": [8, 20]}
    assert batch_under_way(sys._getframe()) is None
