"""`next(iter(loader))` in a loop: a fresh iterator, so a fresh shuffle, for every batch. Two loaders, one unlabelled.

The unlabelled batch gives a consistency loss beside the supervised one.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()
torch.manual_seed(0)
prototypes = torch.randn(8, 64)
label = torch.randint(0, 8, (400,))
labelled = DataLoader(TensorDataset(prototypes[label] + torch.randn(400, 64), label), batch_size=32, shuffle=True)
unlabelled = DataLoader(TensorDataset(prototypes[torch.randint(0, 8, (4000,))] + torch.randn(4000, 64)), batch_size=96, shuffle=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(1, args.steps + 1):
    x, y = next(iter(labelled))
    (u,) = next(iter(unlabelled))
    supervised = F.cross_entropy(model(x), y)
    with torch.no_grad():
        target = model(u).softmax(1)
    consistency = F.mse_loss(model(u + 0.3 * torch.randn_like(u)).softmax(1), target)
    loss = supervised + consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} supervised {supervised.item():.4f} consistency {consistency.item():.4f}", flush=True)
