"""A model is copied between its forward and its backward."""

from __future__ import annotations

import copy
from typing import Any

import torch
from program import Net


def case() -> Any:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    results = []
    for _ in range(5):
        loss = model(torch.ones(2, 8)).sum()
        target = copy.deepcopy(model)
        shallow = copy.copy(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            results.append([target(torch.ones(1, 8)).sum().item(), shallow(torch.ones(1, 8)).sum().item()])
    return results
