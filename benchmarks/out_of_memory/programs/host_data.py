"""A data set that keeps each decoded sample in its loader worker, as an array of NumPy."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Volumes(Dataset):
    def __init__(self):
        self.cache = {}

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = np.random.default_rng(index).random((64, 64, 64), dtype=np.float32)  # keeper
        return self.cache[index].mean(axis=0)


def main():
    model = nn.Sequential(nn.Flatten(), nn.Linear(64 * 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(Volumes(), batch_size=8, num_workers=1, shuffle=True):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
