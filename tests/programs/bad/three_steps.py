"""Ends well after three steps."""

import torch

model = torch.nn.Linear(64, 8)
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    loss = model(torch.randn(256, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
