"""Keeps every activation and grows by some 40 MB a step until memory runs out; stops by itself at `--limit-mb`.

Without a limit from outside it raises MemoryError at its own bound (4 GB), so that no machine is harmed.
"""

import argparse
import resource
import sys

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--limit-mb", type=int, default=4096)
args = parser.parse_args()
model = torch.nn.Linear(512, 512)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
scale = 1024 if sys.platform != "darwin" else 1024 * 1024
for step in range(100_000):
    out = model(torch.randn(20_000, 512))
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    kept.append(loss)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // scale
    print(f"step {step} loss {loss.item():.4f} memory {used} MB", flush=True)
    if used > args.limit_mb:
        raise MemoryError(f"out of memory at step {step}: {used} MB")
