"""A model is trained in nn.DataParallel."""

from __future__ import annotations

from typing import Any

from program import train, trained
from torch import nn


def case() -> Any:
    model = nn.DataParallel(trained())
    return [train(model, 3), sorted(model.state_dict())]
