"""Asks by `inspect.signature` what an optimizer, a loader and a module take, and takes another path if it is hidden.

Prints what it found; exits with code 1 where the answers are not those of torch itself.
"""

import argparse
import inspect
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()
has_fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
has_workers = "num_workers" in inspect.signature(DataLoader).parameters
has_closure = "closure" in inspect.signature(torch.optim.AdamW.step).parameters
has_inputs = "gradient" in inspect.signature(torch.Tensor.backward).parameters
print("fused", has_fused, "num_workers", has_workers, "closure", has_closure, "gradient", has_inputs)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 5))

    def forward(self, features, labels=None):
        logits = self.net(features)
        return (logits, None) if labels is None else (logits, nn.functional.cross_entropy(logits, labels))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **({"fused": False} if has_fused else {}))
x = torch.randn(3200, 64)
loader = DataLoader(TensorDataset(x, x[:, :5].argmax(1)), batch_size=32, shuffle=True)
columns, step = list(inspect.signature(model.forward).parameters), 0
while step < args.steps:
    for batch in loader:
        row = {k: v for k, v in zip(["features", "labels"], batch) if k in columns}
        logits, loss = model(**row)
        if loss is None:
            sys.exit("the signature of forward is hidden: no labels arrived")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step >= args.steps:
            break
sys.exit(0 if has_fused and has_workers and has_closure and has_inputs else 1)
