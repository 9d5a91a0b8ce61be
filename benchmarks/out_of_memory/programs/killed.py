"""A history of predictions that grows until the kernel kills the program."""

import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for step in range(100_000):
    predicted = model(torch.rand(4096, 512))  # holder
    history.append(predicted.detach())  # keeper
    loss = predicted.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
