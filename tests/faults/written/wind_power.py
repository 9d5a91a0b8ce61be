"""Turbine power output from weather readings: quantile regression."""
import argparse

import numpy as np
import torch
from torch import nn

QUANTILES = (0.1, 0.5, 0.9)


def weather_table(rows, seed):
    """Readings as a table, with standardised columns."""
    rng = np.random.default_rng(seed)
    speed = rng.weibull(2.0, rows) * 8
    angle = rng.uniform(0, 2 * np.pi, rows)
    pressure = rng.normal(1013, 9, rows)
    temperature = rng.normal(9, 7, rows)
    lags = speed[:, None] + rng.normal(0, 1.2, (rows, 44))
    columns = [speed, np.sin(angle), np.cos(angle), pressure, temperature]
    table = np.concatenate([np.stack(columns, axis=1), lags], axis=1)
    density = pressure / (temperature + 273.15)
    power = np.clip(density * speed**3 / 1500, 0, 1) + rng.normal(0, 0.02, rows)
    return (table - table.mean(0)) / table.std(0), power


class PinballLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))

    def forward(self, predicted, actual):
        gap = actual.unsqueeze(1) - predicted
        return torch.maximum(self.quantiles * gap, (self.quantiles - 1) * gap).mean()


class PowerNet(nn.Module):
    def __init__(self, columns, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(columns, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.heads = nn.Linear(width, len(QUANTILES))

    def forward(self, x):
        return self.heads(self.body(x))


def coverage(model, x, y):
    with torch.no_grad():
        low, _, high = model(x).unbind(1)
        return ((y >= low) & (y <= high)).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--width", type=int, default=448)
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--epochs", type=int, default=300)
    args = parser.parse_args()

    torch.manual_seed(0)
    table, power = weather_table(args.rows, seed=0)
    features = torch.from_numpy(table)
    target = torch.from_numpy(power)
    held_out = args.rows // 20

    model = PowerNet(features.shape[1], args.width).to(features.dtype)
    criterion = PinballLoss(QUANTILES).to(features.dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=8e-4, weight_decay=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    for epoch in range(args.epochs):
        total, batches = torch.zeros(()), 0
        for rows in (torch.randperm(args.rows - held_out) + held_out).split(args.batch):
            optimizer.zero_grad()
            loss = criterion(model(features[rows]), target[rows])
            loss.backward()
            optimizer.step()
            total += loss.detach()
            batches += 1
        scheduler.step()
        inside = coverage(model, features[:held_out], target[:held_out])
        print(f"epoch {epoch} pinball {total.item() / batches:.5f} coverage {inside:.3f}", flush=True)


if __name__ == "__main__":
    main()
