"""Three models train in three threads."""

from __future__ import annotations

import threading
from typing import Any

import torch
from program import Net


def case() -> Any:
    results: dict[int, list[str]] = {}

    def work(number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        model = Net()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            loss = model(torch.randn(4, 8, generator=generator)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item().hex())
        results[number] = losses

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(3)]
