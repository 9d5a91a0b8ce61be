"""Online learning on a drifting sensor stream, watching how the features move."""
import math

import torch
import torch.nn.functional as F
from torch import nn

SENSORS, WINDOW, OUTPUTS = 12, 64, 4
BATCH, FEATURES = 64, 192


class DriftingPlant:
    """A process whose response changes slowly with time."""

    def __init__(self, seed):
        self.gen = torch.Generator().manual_seed(seed)
        self.mix = torch.randn(SENSORS, OUTPUTS, generator=self.gen)
        self.turn = torch.randn(SENSORS, OUTPUTS, generator=self.gen)
        self.tick = 0

    def observe(self):
        self.tick += 1
        angle = 2 * math.pi * self.tick / 20_000
        window = torch.randn(BATCH, WINDOW, SENSORS, generator=self.gen).cumsum(dim=1) / 5
        response = window[:, -8:].mean(dim=1) @ (math.cos(angle) * self.mix + math.sin(angle) * self.turn)
        return window, torch.tanh(response)


class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(SENSORS, 64, 5, padding=2)
        self.conv2 = nn.Conv1d(64, 96, 5, stride=2, padding=2)
        self.project = nn.Linear(96, FEATURES)

    def forward(self, window):
        x = F.gelu(self.conv1(window.transpose(1, 2)))
        x = F.gelu(self.conv2(x))
        return torch.tanh(self.project(x.mean(dim=2)))


class DriftModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.extract, self.respond = Extractor(), nn.Linear(FEATURES, OUTPUTS)

    def forward(self, window):
        features = self.extract(window)
        return self.respond(features), features


class FeatureDrift:
    """Distance of the current features from the features seen so far."""

    def __init__(self):
        self.seen = {}

    def update(self, tick, features):
        self.seen[tick] = features
        centre = torch.stack(list(self.seen.values())).mean(dim=(0, 1))
        return (features.mean(dim=0) - centre).norm()

    def __len__(self):
        return len(self.seen)


def main(ticks=50_000):
    torch.manual_seed(47)
    plant, model, drift = DriftingPlant(seed=48), DriftModel(), FeatureDrift()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-4)
    smooth = None
    for tick in range(ticks):
        window, target = plant.observe()
        response, features = model(window)
        loss = F.mse_loss(response, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        moved = drift.update(tick, features)
        smooth = loss.detach() if smooth is None else torch.lerp(smooth, loss.detach(), 0.02)
        if tick % 50 == 0:
            print(f"tick {tick} loss {smooth.item():.4f} drift {moved.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
