"""A gradient penalty takes gradients of gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def case() -> Any:
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(critic.parameters())
    values = []
    for _ in range(4):
        inputs = torch.randn(4, 8, requires_grad=True)
        score = critic(inputs)
        (gradient,) = torch.autograd.grad(score.sum(), inputs, create_graph=True)
        loss = score.mean() + (gradient.norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item().hex())
    return values
