"""Leaves with `os._exit(3)` after 30 steps: no atexit handler, no flush, no finally."""

import os

import torch

model = torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 1000):
    loss = model(torch.randn(64, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
    if step == 30:
        os._exit(3)
