"""Normalizations as people write them out."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

WIDTH = 6


class Weighted(nn.Module):
    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, WIDTH))
        self.eps = eps


class Biased(Weighted):
    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__(eps)
        self.bias = nn.Parameter(torch.linspace(-1.0, 1.0, WIDTH))


class BertLayerNorm(Biased):
    def forward(self, x: Any) -> Any:
        """As in TensorFlow: epsilon inside the root."""
        u = x.mean(-1, keepdim=True)
        s = (x - u).pow(2).mean(-1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight * x + self.bias


class ByVariance(Biased):
    def forward(self, inputs: Any) -> Any:
        mean = torch.mean(inputs, dim=-1, keepdim=True)
        var = torch.var(inputs, dim=-1, keepdim=True, unbiased=False)
        return (inputs - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias


class OtherNames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(WIDTH) * 0.7)
        self.b_2 = nn.Parameter(torch.zeros(WIDTH) + 0.1)

    def forward(self, x: Any) -> Any:
        var, mean = torch.var_mean(x, dim=-1, keepdim=True, unbiased=False)
        return self.a_2 * ((x - mean) / (var + 1e-6) ** 0.5) + self.b_2


class WithoutBias(Weighted):
    def forward(self, x: Any) -> Any:
        x = x - x.mean(dim=-1, keepdim=True)
        return self.weight * x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()


class LlamaRMSNorm(Weighted):
    def forward(self, hidden_states: Any) -> Any:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.eps)
        return self.weight * hidden_states.to(input_dtype)


class MetaRMSNorm(Weighted):
    def _norm(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Any) -> Any:
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


class GemmaRMSNorm(MetaRMSNorm):
    def _norm(self, x: Any) -> Any:
        return x / torch.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + self.eps)

    def forward(self, x: Any) -> Any:
        return self._norm(x.float()) * (1.0 + self.weight.float())


class AnnotatedTransformer(Biased):
    """Another function: the sample's deviation, epsilon outside of the root."""

    def forward(self, x: Any) -> Any:
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


class Unbiased(Biased):
    def forward(self, x: Any) -> Any:
        mean = x.mean(-1, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(x.var(-1, keepdim=True) + self.eps) + self.bias


class OverChannels(Biased):
    def forward(self, x: Any) -> Any:
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        return self.weight * ((x - u) / torch.sqrt(s + self.eps)) + self.bias


class TorchsOwn(Biased):
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.layer_norm(x, (WIDTH,), self.weight, self.bias, self.eps)


class CountsItsCalls(Weighted):
    calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class InPlace(Biased):
    def forward(self, x: Any) -> Any:
        x = x - x.mean(-1, keepdim=True)
        x = self.weight * x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        x += self.bias
        return x


class WithHelpers(Weighted):
    """Below it there is a class with another helper."""

    def _norm(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Any) -> Any:
        return self._norm(x) * self.weight


class WithResidual(Weighted):
    def forward(self, x: Any, residual: Any = None) -> Any:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Model(nn.Module):
    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH, WIDTH), norm(), nn.Linear(WIDTH, WIDTH), norm())

    def forward(self, x: Any) -> Any:
        return self.net(x)
