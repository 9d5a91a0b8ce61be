"""A large embedding under Adam: its state comes with the first step."""

import torch
from torch import nn

torch.set_num_threads(1)
table = nn.EmbeddingBag(2_500_000, 64)
head = nn.Linear(64, 2)
optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()])
for _ in range(10):
    loss = head(table(torch.randint(0, 2_500_000, (64, 8)))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
