"""MLP-Mixer on synthetic mosaic images, with gradient health tracking."""
import collections
import math

import torch
from torch import nn
from torch.nn import functional as F

TILE, SIDE, CLASSES = 8, 32, 6


def mosaics(n, seed):
    gen = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, CLASSES, (n,), generator=gen)
    palette = torch.rand(CLASSES, 3, generator=gen)
    images = torch.rand(n, 3, SIDE // 4, SIDE // 4, generator=gen)
    tinted = torch.rand(n, 1, SIDE // 4, SIDE // 4, generator=gen) < 0.3
    images = torch.where(tinted, palette[labels][:, :, None, None], images)
    return F.interpolate(images, scale_factor=4.0, mode="nearest"), labels


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.across = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.within = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.norm2(x))


class MLPMixer(nn.Module):
    def __init__(self, dim=64, depth=8):
        super().__init__()
        tokens = (SIDE // TILE) ** 2
        self.patch = nn.Conv2d(3, dim, TILE, stride=TILE)
        self.blocks = nn.Sequential(*[MixerBlock(tokens, dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


class GradientHealth:
    """Clips by global norm and keeps smoothed statistics for every layer."""

    def __init__(self, model, max_norm):
        self.named = list(model.named_parameters())
        self.max_norm = max_norm
        self.stats = collections.defaultdict(lambda: collections.defaultdict(float))

    def __call__(self):
        squared = 0.0
        for name, p in self.named:
            g, w = p.grad, p.detach()
            values = {
                "norm": g.norm().item(),
                "largest": g.abs().max().item(),
                "mean": g.mean().item(),
                "ratio": g.norm().item() / (w.norm().item() + 1e-8),
                "zeros": (g == 0).float().mean().item(),
            }
            squared += values["norm"] ** 2
            layer = self.stats[name]
            for key, value in values.items():
                layer[key] = 0.95 * layer[key] + 0.05 * value
        total = math.sqrt(squared)
        if total > self.max_norm:
            for _, p in self.named:
                p.grad.mul_(self.max_norm / total)
        return total

    def worst(self):
        return max(self.stats, key=lambda name: self.stats[name]["ratio"])


def main(epochs=300, batch_size=32):
    torch.manual_seed(23)
    images, labels = mosaics(6400, seed=23)
    model = MLPMixer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=epochs * 200)
    health = GradientHealth(model, max_norm=1.0)
    for epoch in range(epochs):
        for i, rows in enumerate(torch.randperm(len(images)).split(batch_size)):
            loss = F.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            norm = health()
            optimizer.step()
            scheduler.step()
            if i % 100 == 0:
                print(f"epoch {epoch} step {i} loss {loss.item():.4f} norm {norm:.2f} worst {health.worst()}",
                      flush=True)


if __name__ == "__main__":
    main()
