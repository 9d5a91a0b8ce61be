"""Compiles its model itself with `torch.compile`; needs a C++ compiler, and some 20 seconds before the first step."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixer(nn.Module):
    def __init__(self, tokens=16, dim=64):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mix = nn.Sequential(nn.Linear(tokens, tokens * 2), nn.GELU(), nn.Linear(tokens * 2, tokens))
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        x = x + self.mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.mlp(self.norm2(x))
        return self.head(x.mean(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--backend", default="inductor", help="aot_eager is quick to start")
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(3200, 16, 64)
    y = x[:, 0, :10].argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = Mixer()
    compiled = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(compiled.parameters(), lr=1e-3)
    step, start = 0, time.time()
    while step < args.steps:
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(compiled(inputs), targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == 1:
                print(f"first step after {time.time() - start:.1f} s", flush=True)
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
            if step >= args.steps:
                break
    print(sorted(compiled.state_dict())[0])


if __name__ == "__main__":
    main()
