"""Pictures without labels, a convolutional autoencoder, a learning-rate schedule by step."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 1024
BATCH = 32

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1000)
args = parser.parse_args()


class Blobs(Dataset):
    def __init__(self, num):
        self.centers = torch.rand(num, 2)
        grid = torch.linspace(0, 1, 48)
        x, y = grid[None, :, None], grid[None, None, :]
        distance = (x - self.centers[:, :1, None]) ** 2 + (y - self.centers[:, 1:, None]) ** 2
        self.pictures = torch.exp(-distance * 40)[:, None]

    def __len__(self):
        return len(self.centers)

    def __getitem__(self, index):
        return self.pictures[index]


encoder = nn.Sequential(nn.Conv2d(1, 24, 5, 2, 2), nn.SiLU(), nn.Conv2d(24, 48, 5, 2, 2), nn.SiLU())
decoder = nn.Sequential(nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(24, 1, 4, 2, 1))
autoencoder = nn.Sequential(encoder, decoder)
optimizer = torch.optim.AdamW(autoencoder.parameters(), lr=2e-3, weight_decay=0.01, fused=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=100_000)
pictures = DataLoader(Blobs(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
step = 0
for epoch in range(args.epochs):
    for picture in pictures:
        rebuilt = autoencoder(picture)
        loss = F.mse_loss(rebuilt, picture)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        step += 1
