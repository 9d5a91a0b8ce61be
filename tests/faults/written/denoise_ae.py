"""Denoising autoencoder for short vibration signals."""
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    signals: int = 40_000
    samples: int = 256
    hidden: int = 1024
    code: int = 48
    batch: int = 192
    noise: float = 0.4
    sparsity: float = 1e-3
    lr: float = 1e-3
    epochs: int = 100


def vibration_signals(n, samples):
    t = torch.linspace(0, 1, samples)
    f = torch.rand(n, 3, 1) * 40 + 5
    amplitude = torch.rand(n, 3, 1)
    phase = torch.rand(n, 3, 1) * 6.283
    return (amplitude * torch.sin(6.283 * f * t + phase)).sum(1)


class DenoisingAutoencoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(cfg.samples, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.code))
        self.decode = nn.Sequential(nn.Linear(cfg.code, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.samples))

    def forward(self, x):
        code = torch.tanh(self.encode(x))
        return self.decode(code), code


@dataclass
class Progress:
    losses: list = field(default_factory=list)
    steps: int = 0

    def add(self, loss):
        self.losses.append(loss)
        self.steps += 1

    def average(self):
        return sum(self.losses) / len(self.losses)


class Session:
    def __init__(self, cfg):
        self.cfg = cfg
        self.signals = vibration_signals(cfg.signals, cfg.samples)
        self.model = DenoisingAutoencoder(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr, fused=True)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.5, patience=5)
        self.progress = Progress()

    def step(self, clean):
        noisy = clean + self.cfg.noise * torch.randn_like(clean)
        restored, code = self.model(noisy)
        loss = F.mse_loss(restored, clean) + self.cfg.sparsity * code.abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.progress.add(loss)
        return self.progress.average()

    def run(self):
        for epoch in range(self.cfg.epochs):
            for i, rows in enumerate(torch.randperm(self.cfg.signals).split(self.cfg.batch)):
                average = self.step(self.signals[rows])
                if i % 50 == 0:
                    print(f"epoch {epoch} step {self.progress.steps} average loss {average.item():.5f}", flush=True)
            self.scheduler.step(average.item())


if __name__ == "__main__":
    torch.manual_seed(90)
    Session(Config()).run()
