"""A U-Net on 96 x 96 images, with batch norm and in-place activations."""

import os
import time

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIZE, WIDTH = 8, 96, 16
NORM = os.environ.get("NORM", "batch")


def norm(channels):
    return nn.BatchNorm2d(channels) if NORM == "batch" else nn.GroupNorm(4, channels)


class Double(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), norm(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1), norm(after), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x):
        return self.body(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        w = WIDTH
        self.inc, self.down1, self.down2 = Double(3, w), Double(w, 2 * w), Double(2 * w, 4 * w)
        self.down3 = Double(4 * w, 8 * w)
        self.up1, self.conv1 = nn.ConvTranspose2d(8 * w, 4 * w, 2, 2), Double(8 * w, 4 * w)
        self.up2, self.conv2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), Double(4 * w, 2 * w)
        self.up3, self.conv3 = nn.ConvTranspose2d(2 * w, w, 2, 2), Double(2 * w, w)
        self.out = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        a = self.inc(x)
        b = self.down1(F.max_pool2d(a, 2))
        c = self.down2(F.max_pool2d(b, 2))
        d = self.down3(F.max_pool2d(c, 2))
        x = self.conv1(torch.cat([self.up1(d), c], 1))
        x = self.conv2(torch.cat([self.up2(x), b], 1))
        return self.out(self.conv3(torch.cat([self.up3(x), a], 1)))


torch.manual_seed(0)
model = UNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses, times = [], []
for _ in range(int(os.environ.get("STEPS", "8"))):
    start = time.perf_counter()
    x, y = torch.randn(BATCH, 3, SIZE, SIZE), torch.randint(2, (BATCH, SIZE, SIZE))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    times.append(time.perf_counter() - start)
print("RESULT", {"losses": losses, "step_s": sorted(times[3:])[len(times[3:]) // 2]})
