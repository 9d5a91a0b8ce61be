"""Losses are the same to the last bit."""

from __future__ import annotations

from typing import Any

import torch
from program import Net, train


def case() -> Any:
    torch.manual_seed(3)
    return [train(Net(), 20), torch.rand(1).item(), train(Net(), 12, num_workers=1)]
