"""Attention by its formula over a long sequence: a matrix of scores for each head."""

import math

import torch
from torch import nn

torch.set_num_threads(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = nn.Linear(64, 192), nn.Linear(64, 64)

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(16)  # holder
        weights = torch.softmax(scores, dim=-1)  # holder
        return self.out((weights @ v).transpose(1, 2).flatten(2))


model = nn.Sequential(*[Attention() for _ in range(4)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.rand(2, 4096, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
