"""A model is compiled after it has trained for some steps."""

from __future__ import annotations

from typing import Any

import torch
from compiling import counted
from program import Net, train


def case() -> Any:
    torch.manual_seed(0)
    model = Net()
    train(model, 4)
    compiled = torch.compile(model, backend="aot_eager")
    result = counted(lambda: train(compiled, 4))
    return [result, train(model, 2), sorted(compiled.state_dict())]
