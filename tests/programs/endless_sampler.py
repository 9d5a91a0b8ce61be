"""A sampler that claims 10**10 samples: `len(loader)` is absurd, and one epoch never ends by itself."""

import argparse
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class Forever(Sampler):
    def __init__(self, size, seed=0):
        self.size, self.seed = size, seed

    def __len__(self):
        return 10**10

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in itertools.count():
            yield from torch.randperm(self.size, generator=g).tolist()


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()
torch.manual_seed(0)
x = torch.randn(2000, 1, 64)
y = x[:, 0, ::8].sum(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, sampler=Forever(len(x)))
model = nn.Sequential(nn.Conv1d(1, 16, 9, padding=4), nn.ReLU(), nn.Conv1d(16, 16, 9, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))
model(x[:1])
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
print("batches an epoch:", len(loader))
for step, (inputs, targets) in enumerate(loader, start=1):
    loss = nn.functional.smooth_l1_loss(model(inputs).squeeze(1), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
    if step == args.steps:
        break
