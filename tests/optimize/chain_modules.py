"""Chains of pointwise operations as people write them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as people write it

WIDTH = 8


def rotate_half(x: Any) -> Any:
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        angle = torch.arange(len(x), dtype=x.dtype)[:, None] / torch.arange(1, WIDTH + 1, dtype=x.dtype)
        q, k = apply_rotary(self.q(x), self.k(x), angle.cos(), angle.sin())
        return q * 2 + k


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Gates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Any) -> Any:
        keep, forget, new = self.gates(x).chunk(3, dim=-1)
        c = forget.sigmoid() * x + keep.sigmoid() * new.tanh()
        return c.tanh().float() * 0.5


class OnlyLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        num = len(x) * 2 + 1
        return torch.relu(self.layer(x)) if num > 2 else x


class Draws(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return torch.tanh(noisy(self.layer(x)))


def noisy(x: Any) -> Any:
    return x * torch.rand_like(x) + 1


class Model(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), layer(), nn.Linear(WIDTH, WIDTH), layer())

    def forward(self, x: Any) -> Any:
        return self.net(x)
