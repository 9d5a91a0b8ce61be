"""The blocks of a model are compiled, each by itself."""

from __future__ import annotations

from typing import Any

import torch
from compiling import counted
from program import train
from torch import nn


def case() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(
        *(torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="eager") for _ in range(3))
    )
    return counted(lambda: train(model, 5))
