"""The models of the acceptance, in plain torch: each as large as the device makes worth while."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Launches(nn.Module):
    """Hundreds of operators that compute next to nothing: the host is the limit."""

    def __init__(self, num: int) -> None:
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(64)) for _ in range(num))

    def forward(self, x: Tensor) -> Tensor:
        for scale in self.scales:
            x = torch.tanh(x * scale + 0.1)
        return x


class Bottleneck(nn.Module):
    """ResNet-50's block."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.short: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.short(x))


class ResNet(nn.Module):
    """ResNet-50 with its four stages; fewer blocks and channels make it small."""

    def __init__(self, blocks: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        channels, stages = width, []
        for stage, num in enumerate(blocks):
            for block in range(num):
                stages.append(Bottleneck(channels, width << stage, 2 if stage and not block else 1))
                channels = 4 * (width << stage)
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.stages(self.stem(x)).mean((2, 3)))


class GptBlock(nn.Module):
    """A transformer block with hand-written causal attention, as minGPT has it."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.first(x)).split(width, 2))
        weights = (q @ k.transpose(-2, -1)) * (shape[-1] ** -0.5)
        weights = weights.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.second(x))


class Gpt(nn.Module):
    """A GPT."""

    def __init__(self, layers: int, width: int, heads: int, length: int, vocabulary: int = 256) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(GptBlock(width, heads, length) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))


class Unet3d(nn.Module):
    """A three-dimensional U-Net with group norm and two levels."""

    def __init__(self, base: int) -> None:
        super().__init__()
        self.down1, self.down2 = _double(1, base), _double(base, 2 * base)
        self.bottom = _double(2 * base, 4 * base)
        self.up2 = nn.ConvTranspose3d(4 * base, 2 * base, 2, 2)
        self.up1 = nn.ConvTranspose3d(2 * base, base, 2, 2)
        self.join2, self.join1 = _double(4 * base, 2 * base), _double(2 * base, base)
        self.head = nn.Conv3d(base, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.down1(x)
        two = self.down2(functional.max_pool3d(one, 2))
        up = self.join2(torch.cat([self.up2(self.bottom(functional.max_pool3d(two, 2))), two], 1))
        return self.head(self.join1(torch.cat([self.up1(up), one], 1)))


def _double(channels: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv3d(channels, out, 3, padding=1), nn.GroupNorm(4, out), nn.ReLU(inplace=True),
        nn.Conv3d(out, out, 3, padding=1), nn.GroupNorm(4, out), nn.ReLU(inplace=True),
    )  # fmt: skip


def mlp(width: int, layers: int) -> nn.Sequential:
    """Return large matrix products, one after the other: what they compute in, they compute in."""
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
