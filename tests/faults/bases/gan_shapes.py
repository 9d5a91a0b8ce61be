"""Round shapes, a generator against a discriminator, two optimizers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_SAMPLES = 2048
BATCH = 32
NOISE = 24


def shapes(num):
    grid = torch.linspace(-1, 1, 32)
    centers = torch.rand(num, 2, 1, 1) - 0.5
    inside = (grid[None, :, None] - centers[:, 0]) ** 2 + (grid[None, None, :] - centers[:, 1]) ** 2 < 0.1
    return inside.float()[:, None] * 2 - 1


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.ConvTranspose2d(NOISE, 96, 4), nn.BatchNorm2d(96), nn.ReLU(),
            nn.ConvTranspose2d(96, 48, 4, 2, 1), nn.BatchNorm2d(48), nn.ReLU(),
            nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 1, 4, 2, 1), nn.Tanh(),
        )

    def forward(self, noise):
        return self.layers(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1), nn.LeakyReLU(0.2),
            nn.Conv2d(48, 96, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(96 * 16, 1),
        )

    def forward(self, image):
        return self.layers(image).squeeze(1)


def main():
    torch.manual_seed(3)
    critic, artist = Discriminator(), Generator()
    opt_critic = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    opt_artist = torch.optim.Adam(artist.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
    bce = nn.BCEWithLogitsLoss()
    real_images = DataLoader(TensorDataset(shapes(NUM_SAMPLES)), BATCH, shuffle=True, drop_last=True)
    ones, zeros = torch.ones(BATCH), torch.zeros(BATCH)
    step = 0
    for epoch in range(1000):
        for (real,) in real_images:
            noise = torch.randn(len(real), NOISE, 1, 1)
            fake = artist(noise)
            opt_critic.zero_grad()
            loss_critic = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)
            loss_critic.backward()
            opt_critic.step()
            opt_artist.zero_grad()
            verdict = critic(fake)
            loss_artist = bce(verdict, ones)
            loss_artist.backward()
            opt_artist.step()
            step += 1


if __name__ == "__main__":
    main()
