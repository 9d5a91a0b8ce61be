"""torch.compile of a whole graph."""

from __future__ import annotations

from typing import Any

import torch
from program import Found
from torch import nn


def read(model: nn.Module, inputs: Any) -> Found:
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    whole = torch.compile(model, backend="eager", fullgraph=True)

    def called(value: Any) -> Any:
        return model(value)

    step = torch.compile(called, backend="eager", fullgraph=True)
    shapes = [type(call(inputs)).__name__ for call in (whole, step) for _ in range(3)]
    return [shapes, dict(counters["graph_break"])], dict(counters["stats"])
