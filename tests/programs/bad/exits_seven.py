"""Prints a traceback at step 5 and leaves with `sys.exit(7)`."""

import sys
import traceback

import torch

model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 1000):
    loss = model(torch.randn(32, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
    if step == 5:
        try:
            raise OSError("the file server does not answer")
        except OSError:
            traceback.print_exc()
            sys.exit(7)
