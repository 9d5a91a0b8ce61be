"""Word vectors by negative sampling, batches made by the data set itself."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

WORDS = 3000
NUM_SAMPLES = 60_000
BATCH = 1024


class Pairs(Dataset):
    def __init__(self, num):
        self.center = torch.randint(0, WORDS, (num,))
        self.context = (self.center + torch.randint(1, 6, (num,))) % WORDS

    def __len__(self):
        return len(self.center)

    def __getitem__(self, indices):
        wrong = torch.randint(0, WORDS, (len(indices), 8))
        return self.center[indices], self.context[indices], wrong


class SkipGram(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.inner, self.outer = nn.Embedding(WORDS, width), nn.Embedding(WORDS, width)

    def forward(self, center, context, wrong):
        here = self.inner(center)
        near = (here * self.outer(context)).sum(1)
        far = torch.bmm(self.outer(wrong), here.unsqueeze(2)).squeeze(2)
        return near, far


def fit(vectors, pairs, epochs):
    opt = optim.Adam(vectors.parameters(), lr=2e-3, fused=True)
    for epoch in range(epochs):
        for center, context, wrong in pairs:
            near, far = vectors(center, context, wrong)
            cost = -(F.logsigmoid(near).mean() + F.logsigmoid(-far).mean())
            opt.zero_grad()
            cost.backward()
            opt.step()
        print("epoch", epoch, "cost", cost.item())


if __name__ == "__main__":
    order = BatchSampler(RandomSampler(range(NUM_SAMPLES)), BATCH, drop_last=True)
    fit(SkipGram(), DataLoader(Pairs(NUM_SAMPLES), sampler=order, batch_size=None), 1000)
