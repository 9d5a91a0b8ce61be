"""The program of case study 3: a U-Net on volumes, drawn as it goes, with each change of the guide as an option.

    python volumetric_unet.py --base-channels 8 --channels-last --amp
    python volumetric_unet.py --until-loss 0.3 --one-cycle 120 --seed 3      # ends when the loss stays below
"""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--base-channels", type=int, default=8)
parser.add_argument("--size", type=int, default=32)
parser.add_argument("--batch-size", type=int, default=2)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--one-cycle", type=int, metavar="STEPS", help="a OneCycle schedule of so many steps")
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--until-loss", type=float)
parser.add_argument("--steps", type=int, default=100_000)


class Volumes(Dataset):
    """Balls in noise, and where they are."""

    def __init__(self, size):
        axis = torch.arange(size, dtype=torch.float32)
        self.places = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"))
        self.size = size

    def __len__(self):
        return 64

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        mask = torch.zeros(self.size, self.size, self.size)
        for _ in range(3):
            centre = torch.rand(3, generator=draw) * self.size
            radius = self.size * (0.08 + 0.12 * torch.rand((), generator=draw))
            mask[((self.places - centre[:, None, None, None]) ** 2).sum(0) < radius**2] = 1
        noise = torch.randn(mask.shape, generator=draw)
        return (mask + 0.7 * noise)[None], mask[None]


class Level(nn.Module):
    """Two convolutions."""

    def __init__(self, inner, outer):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(inner, outer, 3, padding=1), nn.GroupNorm(4, outer), nn.ReLU(),
            nn.Conv3d(outer, outer, 3, padding=1), nn.GroupNorm(4, outer), nn.ReLU(),
        )

    def forward(self, x):
        return self.body(x)


class UNet(nn.Module):
    """Three levels down and up."""

    def __init__(self, base, *, recompute):
        super().__init__()
        self.recompute = recompute
        self.down = nn.ModuleList((Level(1, base), Level(base, 2 * base), Level(2 * base, 4 * base)))
        self.up = nn.ModuleList((Level(6 * base, 2 * base), Level(3 * base, base)))
        self.head = nn.Conv3d(base, 1, 1)

    def level(self, module, x):
        return checkpoint(module, x, use_reentrant=False) if self.recompute and x.requires_grad else module(x)

    def forward(self, x):
        kept = []
        for at, module in enumerate(self.down):
            x = self.level(module, nn.functional.max_pool3d(x, 2) if at else x)
            kept.append(x)
        for module, beside in zip(self.up, kept[-2::-1]):
            x = nn.functional.interpolate(x, scale_factor=2)
            x = self.level(module, torch.cat([x, beside], 1))
        return self.head(x)


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = UNet(args.base_channels, recompute=args.checkpoint).to(device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last_3d)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    limit = 400 if args.until_loss is not None else args.steps
    cycle = None
    if args.one_cycle:
        limit = min(limit, args.one_cycle)
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5 * args.lr, total_steps=limit)
    loader = DataLoader(Volumes(args.size), args.batch_size, shuffle=True, num_workers=args.workers, persistent_workers=args.workers > 0)
    step, smooth = 0, None
    while step < limit:
        for volumes, masks in loader:
            volumes, masks = volumes.to(device), masks.to(device)
            if args.channels_last:
                volumes = volumes.contiguous(memory_format=torch.channels_last_3d)
            with torch.autocast(device, dtype=torch.bfloat16, enabled=args.amp):
                out = model(volumes).float()
                inside = (out.sigmoid() * masks).sum()
                dice = 1 - (2 * inside + 1) / (out.sigmoid().sum() + masks.sum() + 1)
                loss = nn.functional.binary_cross_entropy_with_logits(out, masks) + dice
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if cycle is not None:
                cycle.step()
            step += 1
            if args.until_loss is not None:
                smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
                if smooth < args.until_loss or step == limit:
                    print(f"reached {smooth:.4f} at step {step}", flush=True)
                    return
            elif step % 20 == 0:
                print(f"step {step} loss {loss.item():.3f}", flush=True)
            if step == limit:
                break


if __name__ == "__main__":
    main()
