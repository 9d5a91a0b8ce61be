"""Has handlers of its own for SIGTERM, SIGINT, SIGUSR1 and SIGALRM, and saves before it goes, as on a preempted node.

SIGTERM and SIGINT finish the step, save a checkpoint and exit with 143; an alarm prints the pace every second; SIGUSR1
asks for a checkpoint. Asks for the terminal's size.
"""

import argparse
import os
import shutil
import signal
import sys

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--out", default="runs/signals")
args = parser.parse_args()
os.makedirs(args.out, exist_ok=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters())
wanted, step = [], 0
width = shutil.get_terminal_size().columns


def note(number, frame):
    wanted.append(number)


def tick(number, frame):
    print(f"[{'#' * (step * (width - 20) // args.steps)}] {step}", flush=True)


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, note)
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 1, 1)
for step in range(args.steps):
    x = torch.randn(64, 64)
    loss = nn.functional.mse_loss(model(x), x[:, :8].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if wanted:
        number = wanted.pop(0)
        torch.save(model.state_dict(), f"{args.out}/preempted.pt")
        print(f"saved after signal {number}", flush=True)
        if number != signal.SIGUSR1:
            sys.exit(143)
signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm while the interpreter goes down would kill it
print(f"finished, loss {loss.item():.4f}")
