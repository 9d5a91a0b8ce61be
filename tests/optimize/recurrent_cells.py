"""Recurrent cells as people write them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

INPUTS, WIDTH = 3, 4


class TwoLayers(nn.Module):
    """An LSTM; its gates stand in another order than torch's."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.x2h = nn.Linear(INPUTS, 4 * width)
        self.h2h = nn.Linear(width, 4 * width, bias=False)

    def forward(self, x: Any, state: Any) -> Any:
        h, c = state
        forget, keep, out, new = (self.x2h(x) + self.h2h(h)).chunk(4, dim=1)
        c = torch.sigmoid(forget + 1.0) * c + torch.sigmoid(keep) * torch.tanh(new)
        return torch.sigmoid(out) * torch.tanh(c), c


class JointLayers(nn.Module):
    """An LSTM as in the equations: a layer a gate, of input and state together."""

    def __init__(self) -> None:
        super().__init__()
        self.forget, self.keep, self.new, self.out = (nn.Linear(INPUTS + WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Any, h: Any, c: Any) -> Any:
        both = torch.cat([h, x], dim=1)
        c = self.forget(both).sigmoid() * c + self.keep(both).sigmoid() * self.new(both).tanh()
        h = self.out(both).sigmoid() * c.tanh()
        return h, c


class LayerAGate(nn.Module):
    """An LSTM of eight layers; input and state are as wide."""

    def __init__(self) -> None:
        super().__init__()
        for gate in "ifgo":
            setattr(self, f"x{gate}", nn.Linear(WIDTH, WIDTH))
            setattr(self, f"h{gate}", nn.Linear(WIDTH, WIDTH))

    def forward(self, x: Any, state: Any) -> Any:
        h, c = state
        keep = torch.sigmoid(self.xi(x) + self.hi(h))
        forget = torch.sigmoid(self.xf(x) + self.hf(h))
        c = forget * c + keep * torch.tanh(self.xg(x) + self.hg(h))
        return torch.sigmoid(self.xo(x) + self.ho(h)) * torch.tanh(c), c


class WrittenGRU(nn.Module):
    """Its update gate is one minus torch's, its layers stand in pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.xz, self.hz = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.xr, self.hr = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.xn, self.hn = nn.Linear(INPUTS, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, h: Any) -> Any:
        z = torch.sigmoid(self.xz(x) + self.hz(h))
        r = torch.sigmoid(self.xr(x) + self.hr(h))
        n = torch.tanh(self.xn(x) + r * self.hn(h))
        return (1 - z) * h + z * n


class Elman(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.i2h = nn.Linear(INPUTS + WIDTH, WIDTH)

    def forward(self, x: Any, h: Any) -> Any:
        return torch.tanh(self.i2h(torch.cat((x, h), 1)))


class FirstGRU(WrittenGRU):
    """Of 2014: the state is reset before it is multiplied; torch has no call for it."""

    def forward(self, x: Any, h: Any) -> Any:
        z = torch.sigmoid(self.xz(x) + self.hz(h))
        r = torch.sigmoid(self.xr(x) + self.hr(h))
        return z * h + (1 - z) * torch.tanh(self.xn(x) + self.hn(r * h))


class WithDropout(Elman):
    def forward(self, x: Any, h: Any) -> Any:
        return nn.functional.dropout(super().forward(x, h), 0.5, self.training)


class Normalized(Elman):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Any, h: Any) -> Any:
        return self.norm(super().forward(x, h))


class Counting(Elman):
    num_calls = 0

    def forward(self, x: Any, h: Any) -> Any:
        self.num_calls += 1
        return super().forward(x, h)
