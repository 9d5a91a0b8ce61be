"""Density estimation with affine coupling layers."""
import contextlib
import math

import torch
from torch import nn

SETTINGS = {"dim": 8, "couplings": 8, "hidden": 96, "batch": 1024, "lr": 5e-4, "steps": 100_000, "numerics": "strict"}


@contextlib.contextmanager
def numerics(level):
    """Numeric settings for one optimisation step."""
    with contextlib.ExitStack() as stack:
        if level in ("careful", "strict"):
            stack.enter_context(torch.autograd.set_grad_enabled(True))
        if level == "strict":
            stack.enter_context(torch.autograd.set_detect_anomaly(True))
        yield


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        half = dim // 2
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(),
                                 nn.Linear(hidden, 2 * half))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        fixed, moved = x.chunk(2, dim=1)
        if self.flip:
            fixed, moved = moved, fixed
        scale, shift = self.net(fixed).chunk(2, dim=1)
        scale = 1.5 * torch.tanh(scale)
        moved = moved * torch.exp(scale) + shift
        parts = (moved, fixed) if self.flip else (fixed, moved)
        return torch.cat(parts, dim=1), scale.sum(dim=1)


class CouplingFlow(nn.Module):
    def __init__(self, dim, hidden, couplings):
        super().__init__()
        self.dim = dim
        self.couplings = nn.ModuleList([Coupling(dim, hidden, flip=bool(k % 2)) for k in range(couplings)])

    def log_prob(self, x):
        volume = x.new_zeros(len(x))
        for coupling in self.couplings:
            x, change = coupling(x)
            volume = volume + change
        return volume - 0.5 * (x**2).sum(dim=1) - 0.5 * self.dim * math.log(2 * math.pi)


def spiral_cloud(count, dim, seed):
    gen = torch.Generator().manual_seed(seed)
    t = 3 * torch.rand(count, 1, generator=gen).sqrt()
    curve = torch.cat([t * torch.cos(4 * t), t * torch.sin(4 * t), t], dim=1)
    lift = torch.randn(3, dim, generator=gen)
    cloud = curve @ lift + 0.1 * torch.randn(count, dim, generator=gen)
    return (cloud - cloud.mean(dim=0)) / cloud.std(dim=0)


def update(flow, optimizer, x, level):
    with numerics(level):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
    return loss


def main(cfg):
    torch.manual_seed(82)
    cloud = spiral_cloud(50_000, cfg["dim"], seed=83)
    flow = CouplingFlow(cfg["dim"], cfg["hidden"], cfg["couplings"])
    optimizer = torch.optim.Adam(flow.parameters(), lr=cfg["lr"])
    for step in range(cfg["steps"]):
        x = cloud[torch.randint(0, len(cloud), (cfg["batch"],))]
        loss = update(flow, optimizer, x, cfg["numerics"])
        if step % 100 == 0:
            print(f"step {step} negative log likelihood {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main(SETTINGS)
