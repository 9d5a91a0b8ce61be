"""A stream of batches from an IterableDataset, a deep perceptron, steps counted instead of epochs."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

BATCH = 192
STEPS = 100_000


class Stream(IterableDataset):
    """Makes whole batches, so that the loader has nothing to put together."""

    def __init__(self, batch):
        self.batch = batch
        self.mixing = torch.randn(96, 96, generator=torch.Generator().manual_seed(9))

    def __iter__(self):
        while True:
            yield self.sample()

    def sample(self):
        clean = torch.randn(self.batch, 96)
        return clean @ self.mixing, clean


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.inner(x)


class Separator(nn.Module):
    def __init__(self, depth=6, width=256):
        super().__init__()
        self.enter, self.leave = nn.Linear(96, width), nn.Linear(width, 96)
        self.blocks = nn.Sequential(*(Residual(width) for _ in range(depth)))

    def forward(self, mixed):
        return self.leave(self.blocks(self.enter(mixed)))


def step_once(separator, mixed, clean, optimizer):
    guess = separator(mixed)
    loss = nn.functional.l1_loss(guess, clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


separator = Separator()
optimizer = torch.optim.AdamW(separator.parameters(), lr=5e-4, fused=True)
stream = DataLoader(Stream(BATCH), batch_size=None)
for step, (mixed, clean) in enumerate(itertools.islice(stream, STEPS)):
    loss = step_once(separator, mixed, clean, optimizer)
    if step % 200 == 0:
        print(step, loss.item())
