"""A model is compiled before it is first called."""

from __future__ import annotations

from typing import Any

import torch
from compiling import counted
from program import Net, train


def case() -> Any:
    torch.manual_seed(0)
    model = Net()
    return counted(lambda: train(torch.compile(model, backend="eager"), 6))
