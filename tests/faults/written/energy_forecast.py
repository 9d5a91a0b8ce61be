"""Day-ahead electricity demand from a week of hourly readings."""
import math
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WEEK, DAY = 168, 24


def simulate_readings(hours, seed):
    rng = random.Random(seed)
    columns = 24
    phases = [rng.uniform(0, 6.28) for _ in range(columns)]
    readings = []
    for h in range(hours):
        daily, weekly = 2 * math.pi * h / DAY, 2 * math.pi * h / WEEK
        row = [math.sin(daily + p) + 0.4 * math.cos(weekly + 2 * p) + rng.gauss(0, 0.1) for p in phases]
        readings.append(row)
    return readings


class DemandWindows(Dataset):
    def __init__(self, readings):
        self.readings = readings
        self.demand = [sum(row[:4]) / 4 for row in readings]

    def __len__(self):
        return len(self.readings) - WEEK - DAY

    def __getitem__(self, start):
        split = start + WEEK
        history = torch.tensor(self.readings[start:split])
        future = torch.tensor(self.demand[split : split + DAY])
        return history.t(), future


class CausalLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.filter = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.gate = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.gate(torch.tanh(self.filter(self.pad(x))))


class DemandNet(nn.Module):
    def __init__(self, columns=24, channels=32):
        super().__init__()
        self.lift = nn.Conv1d(columns, channels, 1)
        self.layers = nn.Sequential(*(CausalLayer(channels, 3**i) for i in range(3)))
        self.readout = nn.Linear(channels, DAY)

    def forward(self, history):
        return self.readout(self.layers(self.lift(history))[..., -1])


def train(model, loader, optimizer, epochs):
    criterion = nn.SmoothL1Loss()
    for epoch in range(epochs):
        epoch_loss = torch.zeros(())
        for history, future in loader:
            optimizer.zero_grad()
            loss = criterion(model(history), future)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.detach()
        yield epoch, epoch_loss.item() / len(loader)


def main():
    torch.manual_seed(2)
    dataset = DemandWindows(simulate_readings(24 * 365, seed=9))
    loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True)
    model = DemandNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
    for epoch, loss in train(model, loader, optimizer, epochs=100):
        scheduler.step()
        print(f"epoch {epoch} huber {loss:.5f}", flush=True)


if __name__ == "__main__":
    main()
