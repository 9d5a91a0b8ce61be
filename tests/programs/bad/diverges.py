"""Diverges: the loss doubles, becomes infinite and then NaN within a hundred steps, and the program goes on unmoved."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=2000)
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.8, momentum=0.9)
for step in range(1, args.steps + 1):
    x = torch.randn(64, 32)
    loss = nn.functional.mse_loss(model(x), 5 * x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step < 20 or step % 100 == 0:
        print(f"step {step} loss {loss.item():.4g}", flush=True)
