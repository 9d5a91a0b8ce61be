"""Trains a small residual network to tell the eight kinds of pictures in a folder of JPEG files apart.

    python train.py                          # makes its data on the first start
    python train.py --epochs 3 --steps 100   # at most 100 steps
"""

import argparse
import csv
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from make_data import make

HERE = Path(__file__).resolve().parent
MEAN = torch.tensor([0.45, 0.45, 0.45]).view(3, 1, 1)
STD = torch.tensor([0.23, 0.23, 0.23]).view(3, 1, 1)


class Pictures(Dataset):
    """JPEG files in one folder per class, decoded, cut out and coloured when asked for."""

    def __init__(self, root, size, train):
        self.size, self.train = size, train
        self.classes = sorted(p.name for p in Path(root).iterdir())
        self.files = [(f, i) for i, name in enumerate(self.classes) for f in sorted((Path(root) / name).glob("*.jpg"))]

    def __len__(self):
        return len(self.files)

    def random_crop(self, image):
        for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            image = enhance(image).enhance(random.uniform(0.7, 1.3))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        w, h = image.size
        side = int(min(w, h) * random.uniform(0.6, 1.0))
        left, top = random.randint(0, w - side), random.randint(0, h - side)
        return image.crop((left, top, left + side, top + side)).resize((self.size, self.size), Image.BILINEAR)

    def centre_crop(self, image):
        w, h = image.size
        side = min(w, h)
        left, top = (w - side) // 2, (h - side) // 2
        return image.crop((left, top, left + side, top + side)).resize((self.size, self.size), Image.BILINEAR)

    def __getitem__(self, index):
        path, label = self.files[index]
        image = Image.open(path).convert("RGB")
        image = self.random_crop(image) if self.train else self.centre_crop(image)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
        return (pixels - MEAN) / STD, label


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.skip(x))


class Network(nn.Module):
    def __init__(self, num_classes, width, depth):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)
        )
        blocks, cin = [], width
        for stage in range(3):
            for index in range(depth):
                cout = width * 2**stage
                blocks.append(Block(cin, cout, 2 if stage and index == 0 else 1))
                cin = cout
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(cin, num_classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def weighted_loss(outputs, labels, weights):
    """Cross entropy in which every picture counts as much as its class is rare, and more the worse it is known."""
    loss = 0.0
    for output, label in zip(outputs, labels):
        row = F.cross_entropy(output, label, label_smoothing=0.05)
        loss = loss + weights[label] * row * (1 - torch.exp(-row))
    return loss / len(labels)


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    parser = argparse.ArgumentParser(description="Train the picture classifier.")
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--out", type=Path, default=HERE / "runs")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps (0: no limit)")
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.autograd.set_detect_anomaly(True)  # TODO: we had a NaN once, remove when found

    if not args.data.exists():
        print(f"drawing the pictures into {args.data} ...", flush=True)
        make(args.data)
    train_set = Pictures(args.data / "train", args.size, train=True)
    val_set = Pictures(args.data / "val", args.size, train=False)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=64)

    model = Network(len(train_set.classes), args.width, args.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    counts = np.bincount([label for _, label in train_set.files], minlength=len(train_set.classes))
    weights = torch.tensor(counts.mean() / counts, dtype=torch.float32)

    args.out.mkdir(parents=True, exist_ok=True)
    log = csv.writer((args.out / "log.csv").open("w", newline=""))
    log.writerow(["epoch", "loss", "train_accuracy", "val_accuracy", "seconds"])
    step = 0
    for epoch in range(args.epochs):
        start, losses, right, seen = time.time(), 0.0, 0, 0
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            outputs = model(images)
            loss = weighted_loss(outputs, labels, weights)
            loss.backward()
            optimizer.step()
            losses += loss.item() * len(labels)
            right += (outputs.argmax(1) == labels).sum().item()
            seen += len(labels)
            step += 1
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {losses / seen:.4f} acc {right / seen:.3f}", flush=True)
            if step == args.steps:
                return
        accuracy = evaluate(model, val_loader)
        print(f"epoch {epoch} done: loss {losses / seen:.4f} val acc {accuracy:.3f} {time.time() - start:.1f} s", flush=True)
        log.writerow([epoch, losses / seen, right / seen, accuracy, time.time() - start])
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out / "last.pt")


if __name__ == "__main__":
    main()
