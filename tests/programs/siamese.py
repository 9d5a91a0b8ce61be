"""Two roots: a shared encoder called twice a step and a separate head on the pair, both in one optimizer.

Neither module contains the other, so no single root sees the whole forward; the pairs are drawn at random in the data set.
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch-size", type=int, default=32)
args = parser.parse_args()
torch.manual_seed(0)
random.seed(0)


class Pairs(Dataset):
    def __init__(self, n=2000):
        self.prototypes = torch.randn(20, 1, 28, 28)
        self.label = torch.randint(0, 20, (n,))
        self.group = [(self.label == c).nonzero().flatten().tolist() for c in range(20)]

    def picture(self, index):
        return self.prototypes[self.label[index]] + 2.0 * torch.randn(1, 28, 28)

    def __getitem__(self, index):
        if index % 2 == 0:
            other, same = random.choice(self.group[self.label[index]]), 1.0
        else:
            other = random.randrange(len(self))
            same = float(self.label[other] == self.label[index])
        return self.picture(index), self.picture(other), torch.tensor(same)

    def __len__(self):
        return len(self.label)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 49, 64),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


encoder = Encoder()
head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = optim.Adam([{"params": encoder.parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 3e-3}])
criterion = nn.BCEWithLogitsLoss()
loader = DataLoader(Pairs(), batch_size=args.batch_size, shuffle=True, drop_last=True)

step = 0
while step < args.steps:
    for first, second, same in loader:
        optimizer.zero_grad()
        a, b = encoder(first), encoder(second)
        logits = head(torch.cat([(a - b).abs(), a * b], dim=1)).squeeze(1)
        loss = criterion(logits, same)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0:
            accuracy = ((logits > 0) == (same > 0.5)).float().mean()
            print(f"step {step} loss {loss.item():.4f} accuracy {accuracy.item():.3f}", flush=True)
        if step >= args.steps:
            break
