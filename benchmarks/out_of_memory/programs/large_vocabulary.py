"""A small language model with a vocabulary of 50,000 words: its logits."""

import torch
from torch import nn

torch.set_num_threads(1)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50_000, 64)
        self.mix = nn.GRU(64, 64, batch_first=True)
        self.head = nn.Linear(64, 50_000)

    def forward(self, tokens):
        return self.head(self.mix(self.words(tokens))[0])  # holder


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    tokens = torch.randint(0, 50_000, (16, 257))
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())  # holder
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
