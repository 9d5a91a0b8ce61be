"""Chains in functions that have names of their own for what torch has."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as people write it
from torch import nn

from .chain_modules import WIDTH


class OwnNames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.functions = F

    def gate(self, x: Any, F: Any) -> Any:  # noqa: N803 - as some name the number of features
        return F.relu(x) * 2 + 1

    def forward(self, x: Any) -> Any:
        import torch.nn.functional as own  # as old code does

        y = self.layer(x)
        return self.gate(torch.exp(y) * own.sigmoid(y) + own.tanh(y), self.functions)
