"""Activations are computed again in the backward."""

from __future__ import annotations

from typing import Any

import torch
from program import Net


def case() -> Any:
    from torch.utils.checkpoint import checkpoint

    results = []
    for reentrant in (True, False):
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            inputs = torch.randn(4, 8, requires_grad=True)
            loss = checkpoint(model, inputs, use_reentrant=reentrant).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            results.append(loss.item().hex())
    return results
