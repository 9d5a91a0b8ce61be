"""A float64 network fitted to the solution of an ordinary differential equation; reduced precision would ruin it.

The loss needs the derivative of the network with respect to its input (`create_graph=True`); one cosine-free, loader-free loop.
"""

import argparse
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
args = parser.parse_args()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
t = torch.linspace(0, 2 * math.pi, 256).unsqueeze(1).requires_grad_(True)
for step in range(1, args.steps + 1):
    u = t * net(t) + 1.0  # u(0) = 1
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    loss = ((du + u - torch.cos(t)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        exact = 0.5 * torch.cos(t) + 0.5 * torch.sin(t) + 0.5 * torch.exp(-t)
        print(f"step {step} residual {loss.item():.3e} error {(u - exact).abs().max().item():.3e}", flush=True)
