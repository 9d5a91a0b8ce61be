"""Prints about 100 MB (`--megabytes`) on both streams while it trains: long lines, bars with carriage returns, raw bytes."""

import argparse
import sys

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--megabytes", type=float, default=100)
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()
model = torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
share = int(args.megabytes * 1e6 / args.steps)
for step in range(args.steps):
    loss = model(torch.randn(64, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    left = share
    while left > 0:
        line = f"step {step} loss {loss.item():.6f} " + "x" * min(left, 20_000)
        sys.stdout.write(line + "\n")
        left -= len(line)
    sys.stderr.write(f"\r{step}/{args.steps} [{'=' * (step % 40)}>")
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\xff\xfe not utf-8 \x1b[31mred\x1b[0m\n")
    sys.stdout.buffer.flush()
print("\nprinted everything")
