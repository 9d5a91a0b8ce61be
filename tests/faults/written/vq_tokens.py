"""Learn discrete tokens for one-dimensional signals with stochastic code assignment."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

LENGTH, BATCH, WIDTH = 256, 32, 72
CODES, CODE_DIM = 512, 32


class CodeSampler:
    """Draws a code for every position from the softmax over negative distances."""

    def __init__(self, temperature, seed):
        self.temperature = temperature
        self.rng = np.random.default_rng(seed)

    def draw(self, distance):
        energy = distance.detach().cpu().numpy().astype(np.float64) / -self.temperature
        energy -= energy.max(axis=1, keepdims=True)
        weight = np.exp(energy)
        ladder = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)
        ticket = self.rng.random((len(ladder), 1))
        index = np.minimum((ladder < ticket).sum(axis=1), CODES - 1)
        return torch.from_numpy(index).to(distance.device)


class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codebook = nn.Parameter(0.2 * torch.randn(CODES, CODE_DIM))
        self.sampler = CodeSampler(temperature=0.05, seed=10)

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, CODE_DIM)
        with torch.no_grad():
            distance = (flat**2).sum(1, keepdim=True) - 2 * flat @ self.codebook.T + (self.codebook**2).sum(1)
        index = self.sampler.draw(distance)
        code = F.embedding(index, self.codebook)
        penalty = F.mse_loss(code, flat.detach()) + 0.25 * F.mse_loss(flat, code.detach())
        code = flat + (code - flat).detach()
        return code.view(z.size(0), -1, CODE_DIM).transpose(1, 2), penalty, index


class TokenAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, WIDTH, 8, stride=2, padding=3), nn.GELU(),
            nn.Conv1d(WIDTH, WIDTH, 4, stride=2, padding=1), nn.GELU(),
            nn.Conv1d(WIDTH, CODE_DIM, 4, stride=2, padding=1),
        )
        self.quantizer = Quantizer()
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(CODE_DIM, WIDTH, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(WIDTH, WIDTH, 4, stride=2, padding=1), nn.GELU(),
            nn.ConvTranspose1d(WIDTH, 1, 8, stride=2, padding=3),
        )

    def forward(self, wave):
        code, penalty, index = self.quantizer(self.encoder(wave))
        return self.decoder(code), penalty, index


def waves(count, seed):
    gen = torch.Generator().manual_seed(seed)
    t = torch.arange(LENGTH).float()
    pitch = 0.01 + 0.1 * torch.rand(count, 3, 1, generator=gen)
    phase = 2 * math.pi * torch.rand(count, 3, 1, generator=gen)
    return torch.sin(2 * math.pi * pitch * t + phase).mean(dim=1, keepdim=True)


def main():
    torch.manual_seed(9)
    data = waves(8_000, seed=11)
    model = TokenAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
    for epoch in range(400):
        for step, pick in enumerate(torch.randperm(len(data)).split(BATCH)):
            wave = data[pick]
            rebuilt, penalty, index = model(wave)
            error = F.mse_loss(rebuilt, wave)
            optimizer.zero_grad()
            (error + penalty).backward()
            optimizer.step()
            if step % 50 == 0:
                used = index.unique().numel()
                print(f"epoch {epoch} step {step} error {error.item():.4f} codes in use {used}", flush=True)


if __name__ == "__main__":
    main()
