"""Errors of the program stay its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from program import data, train, trained
from torch.utils.data import DataLoader, Dataset


def case() -> Any:
    model, errors = trained(), []

    class Bad(Dataset[int]):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> int:
            raise KeyError("no such sample")

    def closure() -> float:
        raise ZeroDivisionError("closure")

    attempts: list[Callable[[], Any]] = [
        lambda: model(torch.ones(1, 9)),
        lambda: next(iter(DataLoader(Bad()))),
        lambda: torch.ones(1).backward(),
        lambda: torch.optim.SGD(model.parameters(), lr=-1),
        lambda: torch.optim.LBFGS(model.parameters()).step(closure),
        lambda: DataLoader(data(), batch_size=0),
        lambda: torch.save(model, "/no/such/folder/model.pt"),
    ]
    for attempt in attempts:
        try:
            attempt()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {str(error)[:60]}")
    return [errors, train(model, 3)]
