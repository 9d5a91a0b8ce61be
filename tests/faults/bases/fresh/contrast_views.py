"""Two noisy views of a picture are drawn together; gradient norms are clipped, the rate follows a cosine."""

import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 1920
BATCH = 48
TOTAL = 50_000


class Pictures(Dataset):
    def __init__(self, num):
        self.pictures = torch.rand(num, 3, 28, 28)

    def __len__(self):
        return self.pictures.shape[0]

    def __getitem__(self, i):
        return self.pictures[i]


def conv(width_in, width_out):
    return nn.Sequential(
        nn.Conv2d(width_in, width_out, 3, 2, 1, bias=False), nn.GroupNorm(4, width_out), nn.GELU()
    )


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(conv(3, 32), conv(32, 64), conv(64, 96))
        self.project = nn.Sequential(nn.Linear(96, 128), nn.ReLU(), nn.Linear(128, 48))

    def forward(self, pictures):
        return nn.functional.normalize(self.project(self.trunk(pictures).mean((2, 3))), dim=1)


class Experiment:
    def __init__(self, **settings):
        self.encoder = Encoder()
        self.sgd = torch.optim.SGD(self.encoder.parameters(), momentum=0.9, fused=True, **settings)
        self.rate = torch.optim.lr_scheduler.LambdaLR(
            self.sgd, lambda n: 0.5 * (1 + math.cos(math.pi * n / TOTAL))
        )
        self.pictures = DataLoader(Pictures(NUM_SAMPLES), shuffle=True, batch_size=BATCH, drop_last=True)

    def update(self, picture):
        both = torch.cat([picture, picture]) + 0.1 * torch.randn(2 * len(picture), 3, 28, 28)
        codes = self.encoder(both)
        likeness = codes @ codes.T / 0.2 - 1e9 * torch.eye(len(codes))
        partner = torch.arange(len(codes)).roll(len(picture))
        loss = nn.functional.cross_entropy(likeness, partner)
        self.sgd.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.encoder.parameters(), 5.0)
        self.sgd.step()
        self.rate.step()

    def __call__(self):
        done = 0
        while done < TOTAL:
            for picture in self.pictures:
                self.update(picture)
                done += 1


Experiment(lr=0.1)()
