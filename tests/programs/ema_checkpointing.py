"""An exponential moving average kept in a deep copy of the model, and gradient checkpointing inside the forward.

Recomputation shows as forward time inside backward; the average is updated after each optimizer step.
"""

import argparse
import copy

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, dim=96, depth=3, heads=4, patch=8, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn(1, 16, dim) * 0.02)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.training else block(x)
        return self.head(x.mean(1))


class EMA:
    def __init__(self, model, decay=0.99):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=120)
    args = p.parse_args()
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (1600,))
    images = torch.randn(10, 3, 32, 32)[labels] + 2 * torch.randn(1600, 3, 32, 32)
    loader = DataLoader(TensorDataset(images, labels), 32, shuffle=True, drop_last=True)
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    ema = EMA(model)
    model.train()
    step = 0
    while step < args.steps:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            ema.update(model)
            step += 1
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break
    with torch.no_grad():
        print(f"ema accuracy {(ema.module(images[:500]).argmax(1) == labels[:500]).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
