"""Lightning Fabric: `setup`, `setup_dataloaders`, `fabric.backward`, `fabric.save`; the loop is the user's own.

One process by default; `--devices 2` starts two ranks, which run this command line again.
"""

import argparse

import torch
import torch.nn.functional as F
from lightning.fabric import Fabric, seed_everything
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, n=4000):
        g = torch.Generator().manual_seed(0)
        self.label = torch.randint(0, 5, (n,), generator=g)
        t = torch.linspace(0, 6.28, 256)
        self.x = torch.sin(t[None] * (self.label[:, None] + 1) + torch.rand(n, 1, generator=g)) + 0.8 * torch.randn(n, 256, generator=g)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.x[i, None], self.label[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--out", default="runs/fabric")
    args = parser.parse_args()
    fabric = Fabric(accelerator="cpu", devices=args.devices)
    fabric.launch()
    seed_everything(1)
    model = nn.Sequential(nn.Conv1d(1, 32, 7, 2, 3), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 7, 2, 3), nn.BatchNorm1d(64), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Waves(), batch_size=32, shuffle=True)
    model, optimizer = fabric.setup(model, optimizer)
    loader = fabric.setup_dataloaders(loader)
    done = 0
    for epoch in range(args.epochs):
        model.train()
        for batch_idx, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            fabric.backward(loss)
            optimizer.step()
            done += 1
            if batch_idx % 25 == 0:
                fabric.print(f"epoch {epoch} {batch_idx}/{len(loader)} loss {loss.item():.4f}", flush=True)
            if done == args.steps:
                break
        fabric.save(f"{args.out}/epoch{epoch}.ckpt", {"model": model, "optimizer": optimizer, "epoch": epoch})
        if done == args.steps:
            break


if __name__ == "__main__":
    main()
