"""Saves whole pickles, `torch.save(model)` and the optimizer, and loads them again in a fresh interpreter at the end.

Fails (exit code 1) if the model does not load with a clean environment, or if its keys, children or outputs have changed.
"""

import argparse
import os
import subprocess
import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

CHECK = """
import sys, torch
sys.path.insert(0, {folder!r})
from pickles_model import Net
model = torch.load({path!r} + "/whole.pt", weights_only=False)
state = torch.load({path!r} + "/state.pt", weights_only=True)
probe = torch.load({path!r} + "/probe.pt", weights_only=True)
assert type(model) is Net, type(model)
assert list(model.state_dict()) == list(state) == list(Net().state_dict()), list(model.state_dict())
assert [n for n, _ in model.named_children()] == ["body", "head"]
model.eval()
assert torch.allclose(model(probe["x"]), probe["y"], atol=1e-4)
torch.load({path!r} + "/optimizer.pt", weights_only=False)
print("loads in a fresh interpreter")
"""


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.BatchNorm1d(128))
        self.head = nn.Linear(128, 4)

    def forward(self, x):
        return self.head(self.body(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", default="runs/pickles")
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(4000, 32)
    loader = DataLoader(TensorDataset(x, x[:, :4].argmax(1)), 50, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = 0
    while step < args.steps:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break
    os.makedirs(args.out, exist_ok=True)
    out = os.path.abspath(args.out)
    model.eval()
    with torch.no_grad():
        torch.save({"x": x[:8], "y": model(x[:8]).float()}, f"{out}/probe.pt")
    torch.save(model, f"{out}/whole.pt")
    torch.save(model.state_dict(), f"{out}/state.pt")
    torch.save(optimizer, f"{out}/optimizer.pt")
    env = {k: os.environ[k] for k in ("PATH", "HOME", "LD_LIBRARY_PATH") if k in os.environ}
    code = CHECK.format(folder=os.path.dirname(os.path.abspath(__file__)), path=out)
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


if __name__ == "__main__":
    # A pickle made from __main__.Net could not be found by another program.
    from pickles_model import main as importable_main

    importable_main()
