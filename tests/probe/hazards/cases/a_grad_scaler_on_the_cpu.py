"""A GradScaler steps on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from program import Net


def case() -> Any:
    torch.manual_seed(0)
    model, scaler = Net(), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(2, 8)).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item().hex())
    return losses
