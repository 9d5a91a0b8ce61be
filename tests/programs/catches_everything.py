"""Catches KeyboardInterrupt and every Exception and goes on: a batch that fails is retried, an epoch is started again.

Meant for cluster nodes that fail now and then. Ends only by itself, after `--steps` good steps.
"""

import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.randn(3200, 128), batch_size=32, shuffle=True)


class FlakyNode(RuntimeError):
    pass


def train_step(batch, step):
    if step % 97 == 96 and torch.rand(()) < 0.5:
        raise FlakyNode("CUDA error: the node hiccuped")
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(batch), batch[:, :8].sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    return loss.item()


step = 0
while step < args.steps:
    try:
        for batch in loader:
            for attempt in range(5):
                try:
                    loss = train_step(batch, step)
                    break
                except Exception as error:  # noqa: BLE001
                    print(f"step {step}: {error!r}, attempt {attempt + 1}", flush=True)
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss:.4f}", flush=True)
            if step >= args.steps:
                break
    except (KeyboardInterrupt, SystemExit, Exception) as error:
        print(f"epoch interrupted by {error!r}, starting it again", flush=True)
        time.sleep(0.1)
print("survived")
