"""Classify drawn polygons with a small vision transformer with many narrow heads."""
import argparse
import math

import torch
from torch import nn


def polygons(count, size, kinds, seed):
    gen = torch.Generator().manual_seed(seed)
    label = torch.randint(0, kinds, (count,), generator=gen)
    axis = torch.linspace(-1.2, 1.2, size)
    y, x = axis.view(1, size, 1), axis.view(1, 1, size)
    sides = (label + 3).float().view(-1, 1, 1)
    turn = torch.rand(count, 1, 1, generator=gen) * 2 * math.pi
    angle = torch.atan2(y, x).expand(count, -1, -1) + turn
    sector = 2 * math.pi / sides
    edge = torch.cos(math.pi / sides) / torch.cos(torch.remainder(angle, sector) - sector / 2)
    filled = ((x**2 + y**2).sqrt() < 0.9 * edge).float()
    return (filled + 0.3 * torch.randn(count, size, size, generator=gen)).unsqueeze(1), label


class Head(nn.Module):
    def __init__(self, dim, narrow):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(dim, narrow, bias=False) for _ in range(3))
        self.scale = narrow**-0.5

    def forward(self, x):
        weight = self.query(x) @ self.key(x).transpose(1, 2) * self.scale
        return weight.softmax(dim=-1) @ self.value(x)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = nn.ModuleList([Head(dim, dim // heads) for _ in range(heads)])
        self.merge = nn.Linear(dim, dim)

    def forward(self, x):
        return self.merge(torch.cat([head(x) for head in self.heads], dim=-1))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.before, self.after = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.feed(self.after(x))


class PolygonViT(nn.Module):
    def __init__(self, kinds, size, patch, dim, heads, depth):
        super().__init__()
        self.patches = nn.Conv2d(1, dim, patch, stride=patch)
        self.place = nn.Parameter(0.02 * torch.randn((size // patch) ** 2, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, kinds)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2) + self.place
        return self.out(self.norm(self.blocks(x)).mean(dim=1))


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--dim", type=int, default=128)
    cli.add_argument("--heads", type=int, default=32)
    cli.add_argument("--depth", type=int, default=4)
    cli.add_argument("--batch", type=int, default=8)
    cli.add_argument("--steps", type=int, default=80_000)
    args = cli.parse_args()

    torch.manual_seed(87)
    image, label = polygons(6_000, 36, kinds=6, seed=88)
    model = PolygonViT(6, 36, 6, args.dim, args.heads, args.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    criterion = nn.CrossEntropyLoss()
    for step in range(args.steps):
        pick = torch.randint(0, len(image), (args.batch,))
        logits = model(image[pick])
        loss = criterion(logits, label[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
