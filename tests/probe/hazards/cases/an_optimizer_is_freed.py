"""An optimizer is freed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import torch
from program import Net


def case() -> Any:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    gone = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    return gone() is None
