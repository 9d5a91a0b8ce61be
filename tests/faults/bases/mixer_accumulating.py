"""Patches, a mixer; the loss of two micro-batches is accumulated before each step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 2048
BATCH = 32


class Patches(Dataset):
    def __init__(self, num):
        self.patches = torch.randn(num, 49, 64)
        self.classes = torch.randint(0, 20, (num,))

    def __len__(self):
        return self.classes.shape[0]

    def __getitem__(self, index):
        return {"patches": self.patches[index], "label": self.classes[index]}


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(64, 128)
        self.tokens = nn.ModuleList(nn.Sequential(nn.Linear(49, 98), nn.GELU(), nn.Linear(98, 49)) for _ in range(3))
        self.channels = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)) for _ in range(3)
        )
        self.head = nn.Linear(128, 20)

    def forward(self, patches):
        x = self.embed(patches)
        for token, channel in zip(self.tokens, self.channels):
            x = x + token(x.transpose(1, 2)).transpose(1, 2)
            x = x + channel(x)
        return self.head(x.mean(1))


def run():
    mixer = Mixer()
    feed = DataLoader(Patches(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
    adam = torch.optim.Adam(mixer.parameters(), lr=1e-3, fused=True)
    step = 0
    for _ in range(1000):
        for number, batch in enumerate(feed):
            scores = mixer(batch["patches"])
            loss = nn.functional.cross_entropy(scores, batch["label"]) / 2
            loss.backward()
            if number % 2 == 1:
                adam.step()
                adam.zero_grad()
                step += 1


run()
