"""Takes ten steps, then waits for ever on a queue that nobody fills, at 0% CPU; `--at N` for another step."""

import queue
import sys

import torch

at = int(sys.argv[sys.argv.index("--at") + 1]) if "--at" in sys.argv else 10
model = torch.nn.Linear(32, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inbox = queue.Queue()
for step in range(at + 1):
    if step == at:
        print("waiting for the next shard ...", flush=True)
        inbox.get()
    loss = model(torch.randn(64, 32)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
