"""Training that sums up a regularized loss with its graph."""

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(100_000):
    x = torch.rand(2048, 256)
    hidden = model[1](model[0](x))  # holder
    loss = model[2](hidden).pow(2).mean()
    losses.append(loss + 1e-4 * hidden.square().mean())  # keeper
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
