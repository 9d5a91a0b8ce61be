"""A small MLP whose step takes 1 to 3 ms: what a hook costs shows here first.

Runs at module level, without a main guard; one loader over a TensorDataset; SGD with momentum.
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--batch-size", type=int, default=64)
args = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(6400, 64)
y = (x @ torch.randn(64, 10)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)

model = nn.Sequential(
    nn.Linear(64, args.hidden),
    nn.ReLU(),
    nn.Linear(args.hidden, args.hidden),
    nn.ReLU(),
    nn.Linear(args.hidden, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

step = 0
start = time.time()
while step < args.steps:
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        step += 1
        if step % 500 == 0:
            print(f"step {step} loss {loss.item():.4f} {1000 * (time.time() - start) / step:.2f} ms/step", flush=True)
        if step >= args.steps:
            break
print("finished", step)
