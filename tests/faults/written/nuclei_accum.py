"""Segment nuclei with a small U-shaped net and accumulated gradients."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def paint_slides(count, size, seed):
    gen = torch.Generator().manual_seed(seed)
    axis = torch.arange(size).float()
    y, x = axis.view(1, size, 1), axis.view(1, 1, size)
    mask = torch.zeros(count, size, size)
    for _ in range(5):
        cx = torch.rand(count, 1, 1, generator=gen) * size
        cy = torch.rand(count, 1, 1, generator=gen) * size
        r = 3 + 4 * torch.rand(count, 1, 1, generator=gen)
        mask = torch.maximum(mask, (((x - cx) ** 2 + (y - cy) ** 2) < r**2).float())
    stain = torch.tensor([0.55, 0.2, 0.6]).view(1, 3, 1, 1)
    slide = 0.9 - stain * mask.unsqueeze(1) + 0.15 * torch.randn(count, 3, size, size, generator=gen)
    return TensorDataset(slide, mask.unsqueeze(1))


class Pair(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.a = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.na = nn.GroupNorm(4, outputs)
        self.b = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.nb = nn.GroupNorm(4, outputs)

    def forward(self, x):
        x = F.relu(self.na(self.a(x)))
        return F.relu(self.nb(self.b(x)))


class NucleiNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = Pair(3, width)
        self.deep = Pair(width, 2 * width)
        self.up = Pair(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.deep(F.max_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([fine, coarse], dim=1)))


def dice_and_bce(logits, mask):
    probability = torch.sigmoid(logits)
    overlap = (probability * mask).sum(dim=(1, 2, 3))
    dice = 1 - (2 * overlap + 1) / (probability.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3)) + 1)
    return dice.mean() + F.binary_cross_entropy_with_logits(logits, mask)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--micro-batch", type=int, default=4)
    cli.add_argument("--accumulate", type=int, default=4)
    cli.add_argument("--width", type=int, default=16)
    cli.add_argument("--epochs", type=int, default=400)
    opt = cli.parse_args()

    torch.manual_seed(21)
    loader = DataLoader(paint_slides(1_600, 48, seed=2), batch_size=opt.micro_batch, shuffle=True, drop_last=True)
    net = NucleiNet(opt.width)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)

    updates = 0
    for epoch in range(opt.epochs):
        running = torch.zeros(())
        for number, (slide, mask) in enumerate(loader, start=1):
            loss = dice_and_bce(net(slide), mask) / opt.accumulate
            loss.backward()
            running += loss.detach()
            if number % opt.accumulate:
                continue
            nn.utils.clip_grad_norm_(net.parameters(), 2.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            updates += 1
            if updates % 20 == 0:
                print(f"epoch {epoch} update {updates} loss {running.item() / 20:.4f}", flush=True)
                running.zero_()
        schedule.step()


if __name__ == "__main__":
    main()
