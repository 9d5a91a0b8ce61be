"""LBFGS calls its closure several times a step."""

from __future__ import annotations

from typing import Any

import torch
from program import Net


def case() -> Any:
    torch.manual_seed(0)
    model = Net()
    inputs, optimizer = torch.randn(16, 8), torch.optim.LBFGS(model.parameters(), max_iter=5)
    calls = 0

    def closure() -> torch.Tensor:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        return loss

    return [[float(optimizer.step(closure)).hex() for _ in range(4)], calls]
