"""Time series, a recurrent network, a function for one epoch; gradients are clipped."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 1280
BATCH = 32


class Waves(Dataset):
    def __init__(self, num):
        time = torch.linspace(0, 12, 65)
        self.waves = torch.sin(time * (1 + torch.rand(num, 1)) + 6 * torch.rand(num, 1))

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        wave = self.waves[i]
        return wave[:-1, None], wave[1:, None]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 96, batch_first=True)
        self.out = nn.Linear(96, 1)

    def forward(self, series):
        hidden, _ = self.rnn(series)
        return self.out(hidden)


def train_one_epoch(network, batches, optim, step):
    for series, future in batches:
        optim.zero_grad()
        forecast = network(series)
        loss = (forecast - future).pow(2).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optim.step()
        step += 1
    return step


if __name__ == "__main__":
    network = Forecaster()
    batches = DataLoader(Waves(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
    optim = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    step = 0
    for _ in range(1000):
        step = train_one_epoch(network, batches, optim, step)
