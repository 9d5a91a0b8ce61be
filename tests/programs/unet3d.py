"""A 3D U-Net on small volumes, as for organ segmentation: soft Dice loss, RMSprop with a plateau schedule.

Volumes lie in `.npy` files written at the start and are read, cropped and flipped per sample. RMSprop takes no `fused`.
"""

import argparse
import os
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, folder, crop):
        self.files = sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith("_image.npy"))
        self.crop = crop

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        image = np.load(self.files[i]).astype(np.float32)
        mask = np.load(self.files[i].replace("_image", "_mask"))
        at = [random.randint(0, s - self.crop) for s in image.shape]
        window = tuple(slice(a, a + self.crop) for a in at)
        image, mask = image[window], mask[window]
        for axis in range(3):
            if random.random() < 0.5:
                image, mask = np.flip(image, axis), np.flip(mask, axis)
        image = (image - image.mean()) / (image.std() + 1e-6)
        return torch.from_numpy(image.copy())[None], torch.from_numpy(mask.copy())[None].float()


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv3d(cin, cout, 3, padding=1, bias=False), nn.GroupNorm(4, cout), nn.ReLU(inplace=True),
        nn.Conv3d(cout, cout, 3, padding=1, bias=False), nn.GroupNorm(4, cout), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet3D(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.enc1, self.enc2, self.mid = double_conv(1, base), double_conv(base, base * 2), double_conv(base * 2, base * 4)
        self.pool = nn.MaxPool3d(2)
        self.up2, self.dec2 = nn.ConvTranspose3d(base * 4, base * 2, 2, 2), double_conv(base * 4, base * 2)
        self.up1, self.dec1 = nn.ConvTranspose3d(base * 2, base, 2, 2), double_conv(base * 2, base)
        self.out = nn.Conv3d(base, 1, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(self.pool(e1))
        m = self.mid(self.pool(e2))
        d2 = self.dec2(torch.cat([self.up2(m), e2], dim=1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], dim=1))
        return self.out(d1)


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum((1, 2, 3, 4))
    return 1 - ((2 * inter + eps) / (p.sum((1, 2, 3, 4)) + target.sum((1, 2, 3, 4)) + eps)).mean()


def make_volumes(folder, num, side=40):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(0)
    z, y, x = np.mgrid[0:side, 0:side, 0:side]
    for i in range(num):
        cz, cy, cx = rng.uniform(12, side - 12, 3)
        mask = (((z - cz) / 9) ** 2 + ((y - cy) / 7) ** 2 + ((x - cx) / 6) ** 2) < rng.uniform(0.6, 1.4)
        image = rng.normal(0, 0.6, mask.shape) + mask
        np.save(os.path.join(folder, f"case{i:03d}_image.npy"), image.astype(np.float16))
        np.save(os.path.join(folder, f"case{i:03d}_mask.npy"), mask)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    p.add_argument("--batch-size", type=int, default=2)
    p.add_argument("--crop", type=int, default=32)
    p.add_argument("--cases", type=int, default=24)
    p.add_argument("--out", default="runs/unet3d")
    args = p.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    make_volumes(os.path.join(args.out, "volumes"), args.cases)
    loader = DataLoader(Volumes(os.path.join(args.out, "volumes"), args.crop), args.batch_size, shuffle=True)
    net = UNet3D()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=2)
    done = 0
    for epoch in range(args.epochs):
        net.train()
        total = 0.0
        for image, mask in loader:
            logits = net(image)
            loss = dice_loss(logits, mask) + nn.functional.binary_cross_entropy_with_logits(logits, mask)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            done += 1
            if done == args.steps:
                break
        scheduler.step(total / len(loader))
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)
        torch.save(net.state_dict(), os.path.join(args.out, f"checkpoint_epoch{epoch}.pth"))
        if done == args.steps:
            break
