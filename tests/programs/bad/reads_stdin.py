"""Reads its training text from standard input, a line a step, and ends with it; an empty input ends with exit code 4.

    seq 1 200 | python reads_stdin.py
"""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(256, 32), nn.Flatten(), nn.Linear(32 * 16, 256))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
step = 0
for line in sys.stdin:
    text = (line.encode() * 17)[:17].ljust(17)
    tokens = torch.tensor(list(text))
    loss = nn.functional.cross_entropy(model(tokens[None, :16]), tokens[16:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 50 == 0:
        print(f"line {step} loss {loss.item():.4f}", flush=True)
print(f"read {step} lines", "from a terminal" if sys.stdin.isatty() else "")
sys.exit(0 if step else 4)
