"""The program that all hazards share: a small model that trains on made data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 4)

    def forward(self, pixels: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return self.second(torch.relu(self.first(pixels * scale)))


def data(num: int = 64) -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    return TensorDataset(
        torch.randn(num, 8, generator=generator), torch.randint(0, 4, (num,), generator=generator)
    )


def train(model: nn.Module, steps: int = 6, **loader_keywords: Any) -> list[str]:
    """Train and return the exact losses."""
    loader = DataLoader(data(), batch_size=8, shuffle=True, **loader_keywords)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses: list[str] = []
    while len(losses) < steps:
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
            if len(losses) == steps:
                break
    return losses


def trained(steps: int = 6) -> Net:
    torch.manual_seed(0)
    model = Net()
    train(model, steps)
    return model
