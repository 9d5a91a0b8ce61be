"""Rows of a memory-mapped file, gathered a batch at a time, two networks trained together."""

import tempfile

import numpy
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 6144
BATCH = 128


class Rows(Dataset):
    def __init__(self, path, num):
        self.rows = numpy.memmap(path, dtype="float32", mode="r", shape=(num, 256))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(numpy.array(self.rows[index]))

    def __getitems__(self, indices):
        return torch.from_numpy(self.rows[numpy.sort(indices)])


def written(num):
    path = tempfile.NamedTemporaryFile(suffix=".bin", delete=False).name
    numpy.random.default_rng(0).standard_normal((num, 256), dtype="float32").tofile(path)
    return path


def collate(rows):
    return rows if isinstance(rows, torch.Tensor) else torch.stack(rows)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(256, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 32))
        self.decoder = nn.Sequential(nn.Linear(32, 768), nn.ReLU(), nn.Linear(768, 256))

    def forward(self, rows):
        return self.decoder(self.encoder(rows))


class Fit:
    def __init__(self):
        self.pair = Pair()
        self.rows = DataLoader(Rows(written(NUM_SAMPLES), NUM_SAMPLES), BATCH, shuffle=True, collate_fn=collate)
        self.optimizer = torch.optim.Adam(self.pair.parameters(), lr=1e-3, fused=True)
        self.done = 0

    def one_batch(self, rows):
        back = self.pair(rows)
        loss = nn.functional.smooth_l1_loss(back, rows)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.done += 1

    def run(self, epochs):
        for _ in range(epochs):
            for rows in self.rows:
                self.one_batch(rows)


if __name__ == "__main__":
    Fit().run(1000)
