"""`binary_cross_entropy` on sigmoid outputs, outside the model: it refuses half inputs, and raises under autocast.

A multi-label tagger with a skewed data set, a weighted sampler and `drop_last`.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()
torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(4, 32, 7, padding=3), nn.ReLU(), nn.MaxPool1d(4), nn.Conv1d(32, 32, 7, padding=3), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten())
        self.out = nn.Linear(32, 6)

    def forward(self, x):
        return torch.sigmoid(self.out(self.features(x)))


x = torch.randn(2000, 4, 128)
y = (x.unfold(2, 16, 16).mean(3).reshape(2000, -1)[:, :6] > 0.3).float()
sampler = WeightedRandomSampler(1.0 + y.sum(1), num_samples=2000)
loader = DataLoader(TensorDataset(x, y), batch_size=32, sampler=sampler, drop_last=True)
model = Tagger()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
step = 0
while step < args.steps:
    for inputs, targets in loader:
        probabilities = model(inputs)
        loss = F.binary_cross_entropy(probabilities, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step >= args.steps:
            break
