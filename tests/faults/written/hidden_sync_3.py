"""Adversarial autoencoder for market curves with an adaptive number of critic rounds."""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

POINTS, LATENT, WIDTH = 120, 12, 320


def market_curves(n):
    tenor = torch.linspace(0, 1, POINTS)
    level, slope, bend = torch.randn(3, n, 1)
    curve = level + slope * tenor + bend * (tenor - 0.5) ** 2 * 4
    missing = torch.rand(n, POINTS) < 0.1
    return curve + 0.05 * torch.randn(n, POINTS), ~missing


class CurveAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(POINTS, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.mu, self.logvar = nn.Linear(WIDTH, LATENT), nn.Linear(WIDTH, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, WIDTH), nn.SiLU(), nn.Linear(WIDTH, POINTS))

    def forward(self, curve):
        h = self.encoder(curve)
        mu, logvar = self.mu(h), self.logvar(h).clamp(-6, 4)
        self.spread = math.sqrt(logvar.detach().exp().mean())
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.decoder(z), mu, logvar, z


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH),
                                 nn.LeakyReLU(0.2), nn.Linear(WIDTH, 1))

    def forward(self, z):
        return self.net(z).squeeze(1)


def observed_error(restored, curve, observed):
    gap = torch.masked_select(restored - curve, observed)
    return gap.square().sum() / len(curve)


def worst_half_penalty(restored, curve):
    error = (restored - curve).abs().mean(1)
    worst = torch.where(error > error.median())[0]
    return error[worst].sum() / len(error)


class DriftAlarm:
    """Raises a flag when the first layer stops moving."""

    def __init__(self, layer):
        self.layer = layer
        self.last = layer.weight.detach().clone()
        self.frozen_steps = 0

    def check(self):
        weight = self.layer.weight.detach()
        if torch.allclose(weight, self.last, atol=1e-7):
            self.frozen_steps += 1
        self.last.copy_(weight)


class Trace:
    def __init__(self, path):
        self.sink = open(path, "w")
        self.lowest = torch.tensor(float("inf"))

    def write(self, kl):
        print(kl, file=self.sink)

    def track(self, error):
        self.lowest = min(self.lowest, error)


class AdversarialTrainer:
    def __init__(self):
        self.auto, self.critic = CurveAutoencoder(), Critic()
        self.opt_auto = torch.optim.Adam(self.auto.parameters(), lr=5e-4, fused=True)
        self.opt_critic = torch.optim.Adam(self.critic.parameters(), lr=5e-4, fused=True)
        self.alarm = DriftAlarm(self.auto.encoder[0])
        self.trace = Trace(os.devnull)
        self.skipped = 0

    def critic_rounds(self, z, kl):
        rounds = 1 + (kl > 2.0).long()
        for _ in range(rounds):
            prior = torch.randn_like(z)
            loss = F.softplus(-self.critic(prior)).mean() + F.softplus(self.critic(z)).mean()
            self.opt_critic.zero_grad()
            loss.backward()
            self.opt_critic.step()

    def step(self, curve, observed):
        restored, mu, logvar, z = self.auto(curve)
        kl = (-0.5 * (1 + logvar - mu.square() - logvar.exp())).sum(1).mean()
        error = observed_error(restored, curve, observed)
        fool = F.softplus(-self.critic(z)).mean()
        loss = error + 0.05 * kl + 0.1 * fool + worst_half_penalty(restored, curve)
        self.opt_auto.zero_grad()
        loss.backward()
        if not torch.isfinite(loss):
            self.skipped += 1
            return
        self.opt_auto.step()
        self.critic_rounds(z.detach(), kl.detach())
        self.alarm.check()
        self.trace.write(kl.detach())
        self.trace.track(error.detach())


def main(epochs=400, batch=192):
    torch.manual_seed(64)
    curves, observed = market_curves(20_000)
    trainer = AdversarialTrainer()
    for epoch in range(epochs):
        for rows in torch.randperm(len(curves)).split(batch):
            trainer.step(curves[rows], observed[rows])
        print(f"epoch {epoch} spread {trainer.auto.spread:.3f} frozen {trainer.alarm.frozen_steps} "
              f"skipped {trainer.skipped}", flush=True)


if __name__ == "__main__":
    main()
