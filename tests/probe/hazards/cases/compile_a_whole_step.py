"""Forward, backward and optimizer are compiled as one."""

from __future__ import annotations

from typing import Any

import torch
from compiling import counted
from program import Net


def case() -> Any:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step(inputs: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return counted(lambda: [step(torch.ones(4, 8)).item().hex() for _ in range(5)])
