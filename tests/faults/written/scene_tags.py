"""Multi-label scene tagging from precomputed image features."""
import argparse
from collections import defaultdict

import torch
from torch import nn
from torch.nn import functional as F

TAGS = 32


def make_features(n, dim, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, dim, generator=g)
    projection = torch.randn(dim, TAGS, generator=g)
    y = (x @ projection / dim**0.5 > 0.8).float()
    return x, y


class TagNet(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        self.input = nn.Linear(dim, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.output = nn.Linear(width, TAGS)

    def forward(self, x):
        h = F.gelu(self.input(x))
        for linear, norm in zip(self.hidden, self.norms):
            h = h + F.gelu(linear(norm(h)))
        return self.output(h)


class TagReport:
    """Running precision, recall and calibration for every tag."""

    def __init__(self, threshold=0.5):
        self.threshold = threshold
        self.reset()

    def reset(self):
        self.counts = defaultdict(lambda: [0, 0, 0])
        self.calibration = [[0.0, 0.0, 0] for _ in range(10)]

    def update(self, logits, targets):
        probs = torch.sigmoid(logits.detach())
        for row in range(probs.shape[0]):
            for tag in range(TAGS):
                p = probs[row, tag].item()
                t = targets[row, tag].item()
                cell = self.counts[tag]
                if p > self.threshold:
                    cell[0 if t else 1] += 1
                elif t:
                    cell[2] += 1
                slot = self.calibration[min(int(p * 10), 9)]
                slot[0] += p
                slot[1] += t
                slot[2] += 1

    def summary(self):
        tp = sum(c[0] for c in self.counts.values())
        fp = sum(c[1] for c in self.counts.values())
        fn = sum(c[2] for c in self.counts.values())
        error = sum(abs(p - t) for p, t, n in self.calibration if n)
        total = sum(n for _, _, n in self.calibration)
        return {"f1": 2 * tp / max(1, 2 * tp + fp + fn), "ece": error / max(1, total)}


def fit(args):
    torch.manual_seed(args.seed)
    x, y = make_features(args.images, args.dim, args.seed)
    net = TagNet(args.dim, args.width)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, fused=True)
    report = TagReport()
    steps_per_epoch = args.images // args.batch
    for epoch in range(args.epochs):
        report.reset()
        order = torch.randperm(args.images)
        for step in range(steps_per_epoch):
            take = order[step * args.batch : (step + 1) * args.batch]
            targets = y[take]
            logits = net(x[take])
            loss = F.binary_cross_entropy_with_logits(logits, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.update(logits, targets)
        figures = " ".join(f"{k} {v:.3f}" for k, v in report.summary().items())
        print(f"epoch {epoch} loss {loss.item():.4f} {figures}", flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--images", type=int, default=16_000)
    cli.add_argument("--dim", type=int, default=512)
    cli.add_argument("--width", type=int, default=1024)
    cli.add_argument("--batch", type=int, default=80)
    cli.add_argument("--epochs", type=int, default=200)
    cli.add_argument("--lr", type=float, default=3e-4)
    cli.add_argument("--seed", type=int, default=17)
    fit(cli.parse_args())
