"""A model for every fold is freed."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from program import Net, train


def case() -> Any:
    freed = []
    losses = []
    for fold in range(3):
        torch.manual_seed(fold)
        model = Net()
        losses.append(train(model, 4))
        gone = weakref.ref(model)
        del model
        freed.append(gone() is None)
    return [losses, freed]
