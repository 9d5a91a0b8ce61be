"""A scheduler is made after the optimizer has stepped, without a warning."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from program import trained


def case() -> Any:
    model = trained()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    rates = []
    with warnings.catch_warnings(record=True) as caught:
        for _ in range(3):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr()[0])
    return [rates, [str(warning.message)[:80] for warning in caught]]
