"""Regress solar irradiance from sky features, with gradient statistics."""
import math

import numpy as np
import torch
from torch import nn

ROWS, FEATURES, HORIZONS = 24_000, 48, 12
WIDTH, BATCH, EPOCHS = 640, 192, 500


def sky_table(seed):
    gen = torch.Generator().manual_seed(seed)
    sky = torch.randn(ROWS, FEATURES, generator=gen)
    hour = torch.rand(ROWS, 1, generator=gen) * math.pi
    lead = torch.linspace(0, 0.8, HORIZONS)
    cloud = torch.sigmoid(sky[:, :6].sum(dim=1, keepdim=True))
    flux = torch.sin(hour + lead).clamp(min=0) * (1 - 0.7 * cloud)
    sky[:, -1:] = hour
    return sky, flux + 0.02 * torch.randn(flux.shape, generator=gen)


class GradientRecorder:
    """Collects the distribution of the gradients of every weight."""

    def __init__(self, model, bins=64, limit=0.02):
        self.named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        self.edges = np.linspace(-limit, limit, bins + 1)
        self.counts = {name: np.zeros(bins, dtype=np.int64) for name, _ in self.named}

    def __call__(self, optimizer, args, kwargs):
        for name, p in self.named:
            values = p.grad.detach().cpu().numpy().ravel()
            counts, _ = np.histogram(values, bins=len(self.edges) - 1, range=(self.edges[0], self.edges[-1]))
            self.counts[name] += counts

    def spread(self):
        centre = (self.edges[1:] + self.edges[:-1]) / 2
        total = sum(self.counts.values())
        return math.sqrt(float((total * centre**2).sum() / max(total.sum(), 1)))

    def clear(self):
        for counts in self.counts.values():
            counts.fill(0)


def build_network():
    layers, inputs = [], FEATURES
    for _ in range(3):
        layers += [nn.Linear(inputs, WIDTH), nn.BatchNorm1d(WIDTH), nn.SiLU()]
        inputs = WIDTH
    return nn.Sequential(*layers, nn.Linear(inputs, HORIZONS))


def main():
    torch.manual_seed(70)
    sky, flux = sky_table(seed=71)
    network = build_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    recorder = GradientRecorder(network)
    optimizer.register_step_pre_hook(recorder)
    loss_fn = nn.SmoothL1Loss()
    for epoch in range(EPOCHS):
        running = torch.zeros(())
        batches = torch.randperm(ROWS).split(BATCH)
        for pick in batches:
            loss = loss_fn(network(sky[pick]), flux[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch} loss {running.item() / len(batches):.5f} gradient spread {recorder.spread():.2e}",
              flush=True)
        recorder.clear()


if __name__ == "__main__":
    main()
