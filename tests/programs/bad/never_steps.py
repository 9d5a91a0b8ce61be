"""Uses torch for ten seconds (`--seconds`) and never takes a step: no module, no backward, no optimizer; a power iteration."""

import argparse
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=10)
args = parser.parse_args()
torch.manual_seed(0)
a = torch.randn(400, 400)
a = a @ a.T
v = torch.randn(400)
end, rounds = time.time() + args.seconds, 0
while time.time() < end:
    w = a @ v
    value, v = w.norm(), w / w.norm()
    rounds += 1
    if rounds % 20000 == 0:
        print(f"round {rounds} eigenvalue {value.item():.4f}", flush=True)
print(f"largest eigenvalue {value.item():.4f}")
