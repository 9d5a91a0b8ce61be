"""Image classification from JPEG files decoded with PIL in the training process; the files are drawn at the start.

The labels come from folder names; two loader workers with `--workers 2`; average meters and a progress line as in
published ImageNet scripts.
"""

import argparse
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("data", nargs="?", default="runs/jpeg/data")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
parser.add_argument("-b", "--batch-size", type=int, default=32)
parser.add_argument("-j", "--workers", type=int, default=0)
parser.add_argument("--files", type=int, default=480)
parser.add_argument("-p", "--print-freq", type=int, default=5)


class AverageMeter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.val = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(name=self.name, val=self.val, avg=self.sum / self.count)


class ImageFolder(Dataset):
    def __init__(self, root, transform):
        self.classes = sorted(os.listdir(root))
        self.samples = [(os.path.join(root, c, f), i) for i, c in enumerate(self.classes) for f in sorted(os.listdir(os.path.join(root, c)))]
        self.transform = transform

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        with open(path, "rb") as f:
            img = Image.open(f).convert("RGB")
        return self.transform(img), target


def transform(img):
    side = random.randint(96, 128)
    left, top = random.randint(0, img.width - side), random.randint(0, img.height - side)
    img = img.crop((left, top, left + side, top + side)).resize((48, 48), Image.BILINEAR)
    return torch.from_numpy(np.asarray(img, dtype=np.float32).transpose(2, 0, 1) / 255.0 - 0.5)


def draw(root, num):
    rng = np.random.default_rng(0)
    for c in range(4):
        os.makedirs(os.path.join(root, f"class{c}"), exist_ok=True)
        for i in range(num // 4):
            y, x = np.mgrid[0:160, 0:200]
            wave = np.sin((x * np.cos(c * np.pi / 4) + y * np.sin(c * np.pi / 4)) / rng.uniform(3, 5))
            picture = 128 + 50 * wave[..., None] * rng.uniform(0.5, 1, 3) + rng.normal(0, 20, (160, 200, 3))
            Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(os.path.join(root, f"class{c}", f"{i:04d}.jpg"))


def main():
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    if not os.path.isdir(args.data):
        draw(args.data, args.files)
    loader = DataLoader(ImageFolder(args.data, transform), args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=torch.cuda.is_available())
    model = nn.Sequential(
        nn.Conv2d(3, 24, 5, 2, 2), nn.BatchNorm2d(24), nn.ReLU(True),
        nn.Conv2d(24, 48, 3, 2, 1), nn.BatchNorm2d(48), nn.ReLU(True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 4),
    )  # fmt: skip
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    done = 0
    for epoch in range(args.epochs):
        batch_time, data_time, losses = AverageMeter("Time", ":6.3f"), AverageMeter("Data", ":6.3f"), AverageMeter("Loss", ":.4e")
        model.train()
        end = time.time()
        for i, (images, target) in enumerate(loader):
            data_time.update(time.time() - end)
            output = model(images)
            loss = criterion(output, target)
            losses.update(loss.item(), images.size(0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            batch_time.update(time.time() - end)
            end = time.time()
            done += 1
            if i % args.print_freq == 0:
                print("\t".join([f"Epoch: [{epoch}][{i}/{len(loader)}]", str(batch_time), str(data_time), str(losses)]), flush=True)
            if done == args.steps:
                return


if __name__ == "__main__":
    main()
