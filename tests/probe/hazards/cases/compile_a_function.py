"""A function around the model is compiled."""

from __future__ import annotations

from typing import Any

import torch
from compiling import counted
from program import Net, data, train
from torch.nn import functional
from torch.utils.data import DataLoader


def case() -> Any:
    torch.manual_seed(0)
    model = Net()
    train(model, 4)

    @torch.compile(backend="eager")
    def objective(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(inputs), labels)

    def work() -> list[str]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for inputs, labels in DataLoader(data(), batch_size=8):
            optimizer.zero_grad()
            loss = objective(inputs, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
        return losses

    return counted(work)
