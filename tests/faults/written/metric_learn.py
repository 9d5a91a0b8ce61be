"""Triplet metric learning on product vectors, watching the embedding layer."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class ProductCatalogue:
    def __init__(self, families, per_family, dim, seed):
        rng = np.random.default_rng(seed)
        centre = rng.normal(0, 1, (families, 1, dim))
        items = centre + rng.normal(0, 0.9, (families, per_family, dim))
        self.items = torch.from_numpy(items.astype(np.float32))
        self.families, self.per_family = families, per_family

    def triplets(self, n):
        family = torch.randint(0, self.families, (n,))
        shift = torch.randint(1, self.families, (n,))
        pick = torch.randint(0, self.per_family, (3, n))
        anchor = self.items[family, pick[0]]
        positive = self.items[family, pick[1]]
        negative = self.items[(family + shift) % self.families, pick[2]]
        return torch.cat([anchor, positive, negative])


class EmbeddingNet(nn.Module):
    def __init__(self, dim, width, out):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(dim, width), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
        )
        self.embedding = nn.Linear(width, out)

    def forward(self, x):
        return F.normalize(self.embedding(self.backbone(x)), dim=1)


class ActivationRecorder:
    """Collects the outputs of one layer to report how many directions are in use."""

    def __init__(self, layer, width):
        self.values = np.empty((0, width), dtype=np.float32)
        layer.register_forward_hook(self.hook)

    def hook(self, layer, inputs, output):
        self.values = np.concatenate([self.values, output.detach().numpy()])

    def effective_rank(self, last=4096):
        spectrum = np.linalg.svd(self.values[-last:], compute_uv=False) ** 2
        share = spectrum / spectrum.sum()
        return float(np.exp(-(share * np.log(share + 1e-12)).sum()))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=30_000)
    ap.add_argument("--triplets", type=int, default=96)
    ap.add_argument("--dim", type=int, default=128)
    ap.add_argument("--width", type=int, default=512)
    ap.add_argument("--out", type=int, default=16)
    ap.add_argument("--margin", type=float, default=0.3)
    args = ap.parse_args()

    torch.manual_seed(61)
    catalogue = ProductCatalogue(80, 150, args.dim, seed=61)
    net = EmbeddingNet(args.dim, args.width, args.out)
    recorder = ActivationRecorder(net.embedding, args.out)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, fused=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5000, gamma=0.5)

    for step in range(1, args.steps + 1):
        anchor, positive, negative = net(catalogue.triplets(args.triplets)).chunk(3)
        near = (anchor - positive).square().sum(1)
        far = (anchor - negative).square().sum(1)
        loss = F.relu(near - far + args.margin).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 250 == 0:
            rank = recorder.effective_rank()
            print(f"step {step} triplet loss {loss.item():.4f} effective rank {rank:.1f}", flush=True)


if __name__ == "__main__":
    main()
