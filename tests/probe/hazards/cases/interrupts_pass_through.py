"""Ctrl-C in a forward reaches the program."""

from __future__ import annotations

from typing import Any

import torch
from program import Net, train, trained


def case() -> Any:
    class Interrupting(Net):
        def forward(self, pixels: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            raise KeyboardInterrupt

    caught = 0
    for _ in range(2):
        try:
            train(Interrupting(), 1)
        except KeyboardInterrupt:
            caught += 1
    return [caught, train(trained(), 2)]
