"""Classify pictures stored as class-named folders of image files."""
import atexit
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

CLASSES = ["bands", "checks", "rings", "spots"]
STORED, INPUT = 192, 64


def paint(kind, rng):
    axis = np.linspace(-1, 1, STORED)
    x, y = np.meshgrid(axis, axis)
    f, p = rng.uniform(4, 9), rng.uniform(0, 6)
    field = {
        "bands": np.sin(f * x + p),
        "checks": np.sin(f * x + p) * np.sin(f * y),
        "rings": np.sin(2 * f * np.hypot(x, y) + p),
        "spots": np.cos(f * x) + np.cos(f * y + p) - 0.7,
    }[kind]
    colour = rng.uniform(60, 120, 3)
    rgb = 128 + field[..., None] * colour + rng.normal(0, 8, (STORED, STORED, 3))
    return Image.fromarray(np.clip(rgb, 0, 255).astype(np.uint8))


def write_pictures(root, per_class, seed):
    rng = np.random.default_rng(seed)
    for name in CLASSES:
        folder = os.path.join(root, name)
        os.makedirs(folder)
        for i in range(per_class):
            paint(name, rng).save(os.path.join(folder, f"{i:04d}.jpg"), quality=92)


class PictureFolder(Dataset):
    def __init__(self, root):
        self.samples = []
        for target, name in enumerate(sorted(os.listdir(root))):
            folder = os.path.join(root, name)
            self.samples += [(os.path.join(folder, f), target) for f in sorted(os.listdir(folder))]

    def __len__(self):
        return len(self.samples)

    def load(self, path):
        with Image.open(path) as handle:
            picture = handle.convert("RGB").resize((INPUT, INPUT), Image.Resampling.BILINEAR)
        return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float().div_(127.5).sub_(1.0)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self.load(path), target


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(4, channels)

    def forward(self, x):
        return F.relu(x + self.conv2(F.relu(self.norm(self.conv1(x)))))


class PictureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 4, stride=4)
        self.stage1 = Residual(32)
        self.down = nn.Conv2d(32, 64, 2, stride=2)
        self.stage2 = Residual(64)
        self.fc = nn.Linear(64, len(CLASSES))

    def forward(self, x):
        x = self.stage1(F.relu(self.stem(x)))
        x = self.stage2(F.relu(self.down(x)))
        return self.fc(x.mean(dim=(-2, -1)))


def run(root, epochs=150, batch_size=32):
    loader = DataLoader(PictureFolder(root), batch_size=batch_size, shuffle=True, drop_last=True)
    model = PictureNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        tick, losses = time.time(), []
        for images, targets in loader:
            loss = F.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean().item()
        print(f"epoch {epoch} loss {mean:.4f} ({time.time() - tick:.1f}s)", flush=True)


if __name__ == "__main__":
    torch.manual_seed(0)
    workspace = tempfile.mkdtemp(prefix="pictures_")
    atexit.register(shutil.rmtree, workspace, ignore_errors=True)
    write_pictures(workspace, per_class=240, seed=0)
    run(workspace)
