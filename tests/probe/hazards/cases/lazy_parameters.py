"""Parameters get their shapes in the first forward."""

from __future__ import annotations

from typing import Any

import torch
from program import train
from torch import nn


def case() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(4))
    with torch.no_grad():
        shape = tuple(model(torch.ones(2, 8)).shape)
    return [shape, train(model, 3)]
