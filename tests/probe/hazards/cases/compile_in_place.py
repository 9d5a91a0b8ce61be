"""A model is compiled in place."""

from __future__ import annotations

import io
from typing import Any

import torch
from compiling import counted
from program import Net, train


def case() -> Any:
    torch.manual_seed(0)
    model = Net()

    def work() -> Any:
        model.compile(backend="eager")
        return train(model, 6)

    result = counted(work)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    return [result, sorted(torch.load(buffer, weights_only=True)), len(list(model.children()))]
