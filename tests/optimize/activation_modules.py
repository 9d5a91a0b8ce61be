"""Activation functions as people write them out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

WIDTH = 6


class NewGELU(nn.Module):
    def forward(self, x: Any) -> Any:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class RoundedGELU(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 0.5 * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))


class ErfGELU(nn.Module):
    def forward(self, input: Any) -> Any:
        return input * (1.0 + torch.erf(input / np.sqrt(2.0))) / 2


class Swish(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * torch.sigmoid(x)


class SwishByExp(nn.Module):
    def forward(self, x: Any) -> Any:
        return x / (1 + torch.exp(-x))


class Mish(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * torch.tanh(F.softplus(x))


def gelu(x: Any) -> Any:
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


class ByFunction(nn.Module):
    def forward(self, x: Any) -> Any:
        return gelu(x)


class InALayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        h = self.inner(x)
        return h * h.sigmoid() + x


class QuickGELU(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * torch.sigmoid(1.702 * x)


class Gated(nn.Module):
    def forward(self, x: Any) -> Any:
        y = x + 1
        return x * torch.sigmoid(y)


class OnTheSpot(nn.Module):
    def forward(self, x: Any) -> Any:
        return (x + 1) * torch.sigmoid(x + 1)


class TorchsOwn(nn.Module):
    def forward(self, x: Any) -> Any:
        return F.gelu(x, approximate="tanh")


class Model(nn.Module):
    """Layers with one activation function between them."""

    def __init__(self, activation: type[nn.Module]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), activation(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x: Any) -> Any:
        return self.net(x)
