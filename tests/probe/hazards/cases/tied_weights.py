"""Two modules share one weight."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


def case() -> Any:
    torch.manual_seed(0)
    model = nn.ModuleDict({"embed": nn.Embedding(10, 8), "head": nn.Linear(8, 10, bias=False)})
    model["head"].weight = model["embed"].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    for _ in range(4):
        loss = functional.cross_entropy(model["head"](model["embed"](torch.arange(5))), torch.arange(5))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return [losses, model["head"].weight is model["embed"].weight, len(list(model.parameters()))]
