"""Denoising diffusion on two-dimensional point clouds with averaged weights."""
import argparse
import copy
import math

import torch
import torch.nn as nn


def two_spirals(n):
    t = torch.sqrt(torch.rand(n)) * 3 * math.pi
    sign = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
    xy = torch.stack([t * torch.cos(t), t * torch.sin(t)], dim=1) * sign[:, None]
    return xy / 6 + 0.02 * torch.randn(n, 2)


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", torch.exp(torch.linspace(0, -6, dim // 2)))

    def forward(self, t):
        angles = t[:, None].float() * self.freqs
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class ResidualMLP(nn.Module):
    def __init__(self, width, time_dim):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, width)
        self.time = nn.Linear(time_dim, width)
        self.contract = nn.Linear(width, width)

    def forward(self, h, temb):
        return h + self.contract(nn.functional.silu(self.expand(self.norm(h)) + self.time(temb)))


class NoisePredictor(nn.Module):
    def __init__(self, width=384, blocks=4, time_dim=64):
        super().__init__()
        self.temb = TimeEmbedding(time_dim)
        self.inp = nn.Linear(2, width)
        self.blocks = nn.ModuleList([ResidualMLP(width, time_dim) for _ in range(blocks)])
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        temb = self.temb(t)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, temb)
        return self.out(h)


class WeightAverage:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model.state_dict())

    def update(self, model):
        current = copy.deepcopy(model.state_dict())
        previous = copy.deepcopy(self.shadow)
        for name, value in current.items():
            self.shadow[name] = self.decay * previous[name] + (1.0 - self.decay) * value


class Diffusion:
    def __init__(self, steps):
        beta = torch.linspace(1e-4, 0.02, steps)
        self.steps = steps
        self.beta = beta
        self.alpha_bar = torch.cumprod(1 - beta, dim=0)

    def loss(self, model, x0):
        t = torch.randint(0, self.steps, (len(x0),))
        noise = torch.randn_like(x0)
        a = self.alpha_bar[t, None]
        return (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).square().mean()

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for step in reversed(range(self.steps)):
            eps = model(x, torch.full((n,), step))
            a, b = 1 - self.beta[step], self.alpha_bar[step]
            x = (x - self.beta[step] / (1 - b).sqrt() * eps) / a.sqrt()
            if step:
                x = x + self.beta[step].sqrt() * torch.randn_like(x)
        return x


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--iterations", type=int, default=60_000)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--decay", type=float, default=0.999)
    args = ap.parse_args()
    torch.manual_seed(1)
    points = two_spirals(20_000)
    model, diffusion = NoisePredictor(), Diffusion(200)
    average = WeightAverage(model, args.decay)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, fused=True)
    for iteration in range(1, args.iterations + 1):
        loss = diffusion.loss(model, points[torch.randint(0, len(points), (args.batch,))])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        if iteration % 200 == 0:
            print(f"iteration {iteration} loss {loss.item():.4f}", flush=True)
        if iteration % 10_000 == 0:
            sampler = NoisePredictor()
            sampler.load_state_dict(average.shadow)
            print("sample spread", diffusion.sample(sampler, 256).std(0).tolist(), flush=True)


if __name__ == "__main__":
    main()
