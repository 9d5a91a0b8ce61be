"""Regress gaze direction from eye patches."""
import time

import torch
from torch import nn

from data import gaze_loader

EPOCHS = 300


class GazeNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.mid = nn.Sequential(
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU()
        )
        self.top = nn.Sequential(nn.Conv2d(2 * width, 3 * width, 3, stride=2, padding=1), nn.ReLU())
        self.regress = nn.Sequential(nn.Flatten(), nn.Linear(3 * width * 9 * 13, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, patch):
        return self.regress(self.top(self.mid(self.stem(patch))))


def angular_loss(guess, gaze):
    return nn.functional.smooth_l1_loss(guess, gaze, beta=0.1)


def fit(net, train_set, check_set):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.5)
    for epoch in range(EPOCHS):
        net.train()
        begin = time.perf_counter()
        for step, (patch, gaze) in enumerate(train_set):
            loss = angular_loss(net(patch), gaze)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 60 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        schedule.step()
        net.eval()
        with torch.inference_mode():
            error = torch.stack([angular_loss(net(patch), gaze) for patch, gaze in check_set]).mean()
        print(f"epoch {epoch} check {error.item():.4f} in {time.perf_counter() - begin:.1f}s", flush=True)


if __name__ == "__main__":
    torch.manual_seed(6)
    fit(GazeNet(), gaze_loader(8_000, 1, 32, True), gaze_loader(512, 2, 64, False))
