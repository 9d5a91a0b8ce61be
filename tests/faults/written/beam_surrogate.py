"""Surrogate model for the deflection of loaded beams."""
import numpy as np
import torch
from torch import nn


class BeamSolver:
    """Closed-form deflection of a simply supported beam with two point loads."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    @staticmethod
    def point_load(x, a, force):
        b = 1.0 - a
        left = force * b * x * (1 - b**2 - x**2) / 6
        right = force * a * (1 - x) * (1 - a**2 - (1 - x) ** 2) / 6
        return np.where(x < a, left, right)

    def sample(self, count):
        x = self.rng.uniform(0, 1, count)
        place = self.rng.uniform(0.1, 0.9, (2, count))
        force = self.rng.normal(0, 4, (2, count))
        stiffness = self.rng.uniform(0.5, 2.0, count)
        deflection = sum(self.point_load(x, a, f) for a, f in zip(place, force)) / stiffness
        return np.column_stack([x, place.T, force.T, stiffness]), 10 * deflection


class SineLayer(nn.Module):
    def __init__(self, inputs, outputs, omega):
        super().__init__()
        self.linear, self.omega = nn.Linear(inputs, outputs), omega
        bound = (6 / inputs) ** 0.5 / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.omega * self.linear(x))


class BeamNet(nn.Module):
    def __init__(self, inputs, width=256):
        super().__init__()
        self.layers = nn.Sequential(SineLayer(inputs, width, 6.0), SineLayer(width, width, 1.0),
                                    SineLayer(width, width, 1.0), nn.Linear(width, 1))

    def forward(self, x):
        return self.layers(x).squeeze(1)

    def like(self, reference):
        """Match the device and number format of a tensor."""
        return self.to(device=reference.device, dtype=reference.dtype)


class BeamData:
    def __init__(self, count, seed):
        inputs, deflection = BeamSolver(seed).sample(count)
        mean, scale = inputs.mean(axis=0), inputs.std(axis=0)
        self.inputs = torch.from_numpy((inputs - mean) / scale)
        self.deflection = torch.from_numpy(deflection)

    def batches(self, size):
        for pick in torch.randperm(len(self.inputs)).split(size):
            yield self.inputs[pick], self.deflection[pick]


def fit(epochs=600, batch=512, lr=5e-4):
    torch.manual_seed(36)
    data = BeamData(60_000, seed=37)
    net = BeamNet(data.inputs.shape[1]).like(data.inputs)
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.995)
    for epoch in range(epochs):
        for step, (inputs, deflection) in enumerate(data.batches(batch)):
            loss = nn.functional.mse_loss(net(inputs), deflection)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 60 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.5f}", flush=True)
        decay.step()


if __name__ == "__main__":
    fit()
