"""Predict deterioration from irregularly sampled intensive-care measurements."""
from bisect import bisect_right

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIGNALS = 6
HOURS = 48.0


class Stays(Dataset):
    """Each stay has its own measurement times per signal."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.stays = []
        for _ in range(count):
            risk = int(rng.random() < 0.3)
            signals = []
            for k in range(SIGNALS):
                times = np.sort(rng.uniform(0, HOURS, rng.integers(20, 60)))
                values = np.sin(times / (4 + k)) + risk * times / HOURS + rng.normal(0, 0.4, len(times))
                signals.append((times.tolist(), values.tolist()))
            self.stays.append((signals, risk))

    def __len__(self):
        return len(self.stays)

    def __getitem__(self, i):
        return self.stays[i]


class GridCollate:
    """Brings the stays of a batch onto one regular time grid."""

    def __init__(self, points):
        self.grid = [HOURS * p / (points - 1) for p in range(points)]

    def resample(self, times, values):
        row = []
        for moment in self.grid:
            after = bisect_right(times, moment)
            if after == 0:
                row.append(values[0])
            elif after == len(times):
                row.append(values[-1])
            else:
                span = times[after] - times[after - 1]
                share = (moment - times[after - 1]) / span
                row.append((1 - share) * values[after - 1] + share * values[after])
        return row

    def __call__(self, stays):
        grids = [[self.resample(times, values) for times, values in signals] for signals, _ in stays]
        risk = torch.tensor([float(risk) for _, risk in stays])
        return torch.tensor(grids), risk


class CausalBlock(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(width, width, 3, dilation=dilation)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(self.pad(x))))


class RiskNet(nn.Module):
    def __init__(self, width=48, depth=3):
        super().__init__()
        self.enter = nn.Conv1d(SIGNALS, width, 1)
        self.blocks = nn.Sequential(*[CausalBlock(width, 2**d) for d in range(depth)])
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        return self.leave(self.blocks(self.enter(x))[:, :, -1]).squeeze(1)


def train(epochs=400, points=144, batch=32):
    torch.manual_seed(23)
    loader = DataLoader(Stays(2_400, seed=24), batch_size=batch, shuffle=True, drop_last=True,
                        collate_fn=GridCollate(points))
    net = RiskNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
    for epoch in range(epochs):
        for step, (signals, risk) in enumerate(loader):
            loss = criterion(net(signals), risk)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 30 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    train()
