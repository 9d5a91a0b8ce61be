"""A recurrent tagger that meets one document much longer than the others."""

import torch
from torch import nn

torch.set_num_threads(1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(1000, 256)
        self.wide, self.narrow = nn.Linear(256, 2048), nn.Linear(2048, 10)

    def forward(self, tokens):
        return self.narrow(torch.tanh(self.wide(self.words(tokens))))  # holder


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lengths = [120, 140, 90, 130, 110, 100, 125, 135, 20_000, 110]
for length in lengths * 10:
    tokens = torch.randint(0, 1000, (8, length))
    loss = model(tokens).flatten(0, 1).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
