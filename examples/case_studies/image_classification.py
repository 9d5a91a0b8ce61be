"""The program of case study 1: a residual network on JPEG files, with every change of the lab as an option.

    python image_classification.py --depth 18 --workers 2 --amp --compile
"""

import argparse
import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int, choices=(18, 50), default=18)
parser.add_argument("--width", type=int, default=16, help="channels of the first stage; 64 is the published network")
parser.add_argument("--size", type=int, default=96)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=100_000)
parser.add_argument("--data", type=Path, default=Path("data"))


class Residual(nn.Module):
    """Two convolutions, or three with a bottleneck, beside a short cut."""

    def __init__(self, inner, width, stride, *, bottleneck):
        super().__init__()
        outer = width * 4 if bottleneck else width
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        widths = (inner, width, width, outer) if bottleneck else (inner, width, outer)
        layers = []
        for at, (kernel, before, after) in enumerate(zip(kernels, widths, widths[1:])):
            step = stride if kernel == 3 and at == len(kernels) // 2 - (not bottleneck) else 1
            layers += [nn.Conv2d(before, after, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        same = stride == 1 and inner == outer
        self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


class ResNet(nn.Module):
    """ResNet-18 or ResNet-50, of any width."""

    def __init__(self, depth, width, classes, *, recompute):
        super().__init__()
        self.recompute = recompute
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, inner = [], width
        for stage, num in enumerate((2, 2, 2, 2) if depth == 18 else (3, 4, 6, 3)):
            for at in range(num):
                block = Residual(inner, width << stage, 2 if stage and not at else 1, bottleneck=depth == 50)
                inner = (width << stage) * (4 if depth == 50 else 1)
                blocks.append(block)
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(inner, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return self.head(x.mean((2, 3)))


class Jpegs(Dataset):
    """Files of a folder: decoded, flipped and scaled in Python, as most programs do it."""

    def __init__(self, folder, size):
        self.files = sorted(folder.glob("*.jpg"))
        self.size = size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.files[index].read_bytes())).convert("RGB")
        pixels = np.asarray(image.resize((self.size, self.size), Image.BILINEAR), dtype=np.float32) / 255
        if torch.rand(()) < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))), int(self.files[index].stem.split("-")[1])


def make_data(folder, num=640, classes=8):
    """Draw files of bands whose direction is their class; the same ones every time."""
    if len(list(folder.glob("*.jpg"))) >= num:
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:192, :256]
    for number in range(num):
        label = number % classes
        angle = np.pi * label / classes + rng.normal(0, 0.05)
        waves = np.sin((x * np.cos(angle) + y * np.sin(angle)) / rng.uniform(4, 9) + rng.uniform(0, 6))
        pixels = 128 + 60 * waves[..., None] * rng.uniform(0.3, 1, 3) + rng.normal(0, 20, (192, 256, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number:05d}-{label}.jpg", quality=88)


def main():
    args = parser.parse_args()
    make_data(args.data)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = ResNet(args.depth, args.width, 8, recompute=args.checkpoint).to(device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)
    if args.compile:
        model.compile()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = DataLoader(
        Jpegs(args.data, args.size), batch_size=args.batch_size, shuffle=True, drop_last=True,
        num_workers=args.workers, persistent_workers=args.workers > 0, pin_memory=device == "cuda",
    )
    step = 0
    while step < args.steps:
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            if args.channels_last:
                images = images.contiguous(memory_format=torch.channels_last)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=args.amp):
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
            if step == args.steps:
                break


if __name__ == "__main__":
    main()
