"""Segmentation of stripes with Lightning Fabric."""

import lightning
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 800
BATCH = 16


class Stripes(Dataset):
    def __init__(self, num):
        angle = torch.rand(num, 1, 1) * 3
        grid = torch.arange(40.0)
        self.masks = ((grid[None, :, None] * angle.cos() + grid[None, None] * angle.sin()).sin() > 0).float()
        self.pictures = self.masks + 0.5 * torch.randn(num, 40, 40)

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, index):
        return {"picture": self.pictures[index, None], "mask": self.masks[index, None]}


class Unet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.down = nn.Conv2d(1, width, 3, 2, 1)
        self.deep = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(2 * width, width, 3, 1, 1),
            nn.ReLU(),
        )
        self.up = nn.ConvTranspose2d(width, 1, 2, 2)

    def forward(self, picture):
        low = self.down(picture)
        return self.up(low + self.deep(low))


def run(fabric):
    fabric.seed_everything(2)
    unet = Unet()
    adam = torch.optim.Adam(unet.parameters(), lr=2e-3, fused=True)
    unet, adam = fabric.setup(unet, adam)
    stripes = fabric.setup_dataloaders(DataLoader(Stripes(NUM_SAMPLES), batch_size=BATCH, shuffle=True))
    for _ in range(1000):
        for batch in stripes:
            drawn = unet(batch["picture"])
            loss = F.binary_cross_entropy_with_logits(drawn, batch["mask"])
            adam.zero_grad()
            fabric.backward(loss)
            adam.step()


if __name__ == "__main__":
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    fabric.launch()
    run(fabric)
