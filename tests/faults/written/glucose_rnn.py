"""Forecast blood glucose with a normalised gated recurrent cell."""
import argparse
import math

import torch
from torch import nn


class GatedCell(nn.Module):
    """Update gate and layer-normalised candidate; the input part is computed outside."""

    def __init__(self, hidden):
        super().__init__()
        self.recurrent = nn.Linear(hidden, 2 * hidden, bias=False)
        self.norm = nn.LayerNorm(hidden)

    def forward(self, drive, state):
        gate_x, candidate_x = drive.chunk(2, dim=-1)
        gate_h, candidate_h = self.recurrent(state).chunk(2, dim=-1)
        gate = torch.sigmoid(gate_x + gate_h)
        candidate = torch.tanh(self.norm(candidate_x + candidate_h))
        return torch.lerp(state, candidate, gate)


class GlucoseForecaster(nn.Module):
    def __init__(self, inputs, hidden, horizon):
        super().__init__()
        self.hidden = hidden
        self.encode = nn.Linear(inputs, 2 * hidden)
        self.cell = GatedCell(hidden)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, horizon))

    def forward(self, series):
        drive = self.encode(series)
        state = series.new_zeros(series.size(0), self.hidden)
        for t in range(series.size(1)):
            state = self.cell(drive[:, t], state)
        return self.head(state)


def simulate_patients(count, length, horizon, seed):
    gen = torch.Generator().manual_seed(seed)
    t = torch.arange(length + horizon).float()
    phase = torch.rand(count, 1, generator=gen) * 2 * math.pi
    period = 18 + 12 * torch.rand(count, 1, generator=gen)
    meals = (torch.rand(count, length + horizon, generator=gen) < 0.08).float()
    kernel = torch.exp(-torch.arange(12).float() / 4).flip(0).view(1, 1, -1)
    response = nn.functional.conv1d(nn.functional.pad(meals.unsqueeze(1), (11, 0)), kernel).squeeze(1)
    glucose = torch.sin(2 * math.pi * t / period + phase) + response
    glucose = glucose + 0.1 * torch.randn(glucose.shape, generator=gen)
    hour = torch.stack([torch.sin(t / 12), torch.cos(t / 12)], dim=-1).expand(count, -1, -1)
    features = torch.cat([glucose.unsqueeze(-1), meals.unsqueeze(-1), hour], dim=-1)
    return features[:, :length].contiguous(), glucose[:, length:].contiguous()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=224)
    parser.add_argument("--length", type=int, default=36)
    parser.add_argument("--horizon", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=500)
    args = parser.parse_args()

    torch.manual_seed(12)
    series, future = simulate_patients(9_600, args.length, args.horizon, seed=1)
    model = GlucoseForecaster(series.size(-1), args.hidden, args.horizon)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)

    for epoch in range(args.epochs):
        order = torch.randperm(len(series))
        for step, pick in enumerate(order.split(args.batch)):
            forecast = model(series[pick])
            loss = nn.functional.huber_loss(forecast, future[pick])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} huber {loss.item():.4f}", flush=True)
        scheduler.step()


if __name__ == "__main__":
    main()
