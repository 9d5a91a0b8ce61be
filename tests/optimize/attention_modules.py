"""Attention as published programs write it out, and changed so that it must be left alone."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as programs name it
from torch import nn

WIDTH, HEADS, LENGTH = 16, 2, 6


class Attention(nn.Module):  # type: ignore[misc]
    """What the others share: projections and heads."""

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5
        self.p = p
        self.attn_dropout = nn.Dropout(p)
        self.attend = nn.Softmax(dim=-1)
        self.register_buffer("tril", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))
        self.register_buffer("wide", torch.tril(torch.ones(LENGTH, LENGTH), diagonal=1))

    def heads(self, x: torch.Tensor) -> Any:
        shape = (*x.shape[:2], HEADS, WIDTH // HEADS)
        return (part.view(shape).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))

    def out(self, y: torch.Tensor) -> Any:
        return self.proj(y.transpose(1, 2).flatten(2))


class MinGpt(Attention):
    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        t = x.size(1)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.tril[:, :, :t, :t] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = F.dropout(att, self.p, self.training)
        y = att @ v
        return self.out(y)


class Vit(Attention):
    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(x.shape)
        return self.proj(x)


class Bert(Attention):
    def forward(self, x: torch.Tensor, padding: torch.Tensor | None = None) -> Any:
        q, k, v = self.heads(x)
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / math.sqrt(q.size(-1))
        if padding is not None:
            scores = scores + padding
        probs = nn.functional.softmax(scores, dim=-1)
        return self.out(torch.matmul(probs, v))


def attention(query: Any, key: Any, value: Any, mask: Any = None, dropout: Any = None) -> Any:
    """As the annotated transformer has it, without the weights in what it returns."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value)


class Annotated(Attention):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        q, k, v = self.heads(x)
        return self.out(attention(q, k, v, mask, dropout=self.attn_dropout))


class Einsum(Attention):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        q, k, v = (part.transpose(1, 2) for part in self.heads(x))
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        weights = torch.softmax(energy / (WIDTH ** (1 / 2)), dim=3)
        y = torch.einsum("nhql,nlhd->nqhd", weights, v)
        return self.proj(y.flatten(2))


class Lucid(Attention):
    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        attn = self.attend(dots)
        attn = self.attn_dropout(attn)
        return self.out(torch.matmul(attn, v))


class OneExpression(Attention):
    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        return self.out(
            F.softmax(q @ k.mT / math.sqrt(q.shape[-1]) + self.wide[: x.size(1), : x.size(1)], dim=-1) @ v
        )


class ReturnsWeights(Attention):
    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(-1)
        return self.out(weights @ v), weights


class TalkingHeads(Attention):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(HEADS, HEADS, 1)

    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        weights = self.mix(q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.out(weights @ v)


class OverQueries(Attention):
    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-2)
        return self.out(weights @ v)


class TensorScale(Attention):
    """A temperature that learns cannot be given to the kernel as a number."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> Any:
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) * self.temperature).softmax(dim=-1)
        return self.out(weights @ v)


class WithCache(Attention):
    def forward(self, x: torch.Tensor, cache: Any = None) -> Any:
        q, k, v = self.heads(x)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.out(weights @ v)


class Model(nn.Module):  # type: ignore[misc]
    """Two layers of one kind."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList([layer(**kwargs) for _ in range(2)])

    def forward(self, x: torch.Tensor, *args: Any) -> Any:
        for layer in self.layers:
            y = layer(x, *args)
            x = x + (y[0] if isinstance(y, tuple) else y)
        return x
