"""Models whose blocks are computed twice: what must come out right, and what must be left alone."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import torch
from torch import nn

RANDOM = random.Random(0)


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.body = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(0.2)
        self.register_buffer("mask", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.body(self.norm(x))) * self.mask


class Convolutions(nn.Sequential):  # type: ignore[misc]
    def __init__(self, before: int = 3, after: int = 4) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1),
            nn.BatchNorm2d(after, momentum=None),
            nn.ReLU(inplace=True),
        )


class Counts(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.num = getattr(self, "num", 0) + 1
        return super().forward(x)


class Collects(Block):
    seen: ClassVar[list[Any]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x.shape)
        return super().forward(x)


class SkipsByPython(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if random.random() < 0.5 else super().forward(x)


class SkipsByOwnGenerator(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if RANDOM.random() < 0.5 else super().forward(x)


class DrawsByOwnGenerator(Block):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * torch.rand(x.shape, generator=self.generator)


class Prints(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("block")
        return super().forward(x)


class ByHelper(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _stochastic(super().forward(x))


def _stochastic(x: torch.Tensor) -> torch.Tensor:
    return x * RANDOM.random()


class ChangesItsInput(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x *= 1.5
        return self.body(x)


class ChangesABuffer(Block):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = self.mask
        y = self.body(x) * mask.clone()
        mask.mul_(0.9)
        return y


class CollectsByAnotherName(Block):
    seen: ClassVar[list[Any]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = self.seen
        seen.append(x.shape)
        return super().forward(x)


class BeginsWithRelu(Block):
    """Its backward needs its input, which a recomputation reads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x.relu().square())


class OwnBatchNorm(nn.Module):  # type: ignore[misc]
    """Its statistics change within a kernel: their versions stay."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.Linear(width, width))
        self.register_buffer("stored_mean", torch.zeros(width))
        self.register_buffer("stored_var", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.body(x).flatten(0, 1)
        normal = nn.functional.batch_norm(
            rows, self.stored_mean, self.stored_var, training=self.training, momentum=0.1
        )
        return x + normal.view_as(x)


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, block: type[nn.Module] = Block, num: int = 3) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.layers = nn.ModuleList([block() for _ in range(num)])
        self.head = nn.Linear(8, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class UNet(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.inc = Convolutions(3, 4)
        self.down = Convolutions(4, 8)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.outc = Convolutions(8, 4)
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = self.inc(x)
        low = self.down(nn.functional.max_pool2d(top, 2))
        return self.head(self.outc(torch.cat([self.up(low), top], 1)))


class AddsInPlace(Model):
    """Each block's input is changed after it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for layer in self.layers:
            x += layer(x)
        return self.head(x)


class Cache:
    """Keys of the blocks, as decoders keep them."""

    def __init__(self) -> None:
        self.keys: dict[int, torch.Tensor] = {}

    def update(self, at: int, key: torch.Tensor) -> torch.Tensor:
        self.keys[at] = torch.cat([self.keys[at], key], 1) if at in self.keys else key
        return self.keys[at]


class Attends(Block):
    def forward(self, x: torch.Tensor, at: int, cache: Any) -> torch.Tensor:  # type: ignore[override]
        keys = cache.update(at, self.norm(x))
        return x + self.body((x @ keys.mT).softmax(-1) @ keys)


class Lists(Block):
    def forward(self, x: torch.Tensor, seen: list[torch.Tensor]) -> torch.Tensor:  # type: ignore[override]
        seen.append(self.norm(x))
        return x + self.body(sum(seen))


class WithCache(Model):
    def __init__(self) -> None:
        super().__init__(Attends)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cache, x = Cache(), self.first(x)
        for at, layer in enumerate(self.layers):
            x = layer(x, at, cache)
        return self.head(x)


class WithList(Model):
    def __init__(self) -> None:
        super().__init__(Lists)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, seen)
        assert len(seen) == len(self.layers)
        return self.head(x)
