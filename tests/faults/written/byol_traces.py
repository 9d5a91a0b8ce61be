"""Self-supervised features for seismic traces with a slow-moving target encoder."""
import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

N_TRACES, LENGTH, CHANNELS = 6_000, 256, 3
BATCH, EPOCHS, BASE_MOMENTUM = 32, 300, 0.99


class TraceEncoder(nn.Module):
    def __init__(self, width=32, out=96):
        super().__init__()
        self.conv1 = nn.Conv1d(CHANNELS, width, 9, stride=2, padding=4)
        self.conv2 = nn.Conv1d(width, 2 * width, 7, stride=2, padding=3)
        self.conv3 = nn.Conv1d(2 * width, 3 * width, 5, stride=2, padding=2)
        self.norm1, self.norm2 = nn.BatchNorm1d(width), nn.BatchNorm1d(2 * width)
        self.project = nn.Sequential(nn.Linear(3 * width, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, out))

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return self.project(self.conv3(x).amax(dim=2))


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = TraceEncoder()
        self.predictor = nn.Sequential(nn.Linear(96, 192), nn.BatchNorm1d(192), nn.ReLU(), nn.Linear(192, 96))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.online_weights = list(self.online.parameters())
        self.target_weights = list(self.target.parameters())

    def forward(self, first, second):
        guess_a, guess_b = self.predictor(self.online(first)), self.predictor(self.online(second))
        with torch.no_grad():
            goal_a, goal_b = self.target(second), self.target(first)
        return 4 - 2 * (F.cosine_similarity(guess_a, goal_a).mean() + F.cosine_similarity(guess_b, goal_b).mean())

    @torch.no_grad()
    def follow(self, momentum):
        torch._foreach_lerp_(self.target_weights, self.online_weights, 1.0 - momentum)


def seismograms(seed):
    gen = torch.Generator().manual_seed(seed)
    t = torch.arange(LENGTH).float()
    onset = torch.randint(30, 150, (N_TRACES, 1, 1), generator=gen).float()
    pitch = 0.05 + 0.2 * torch.rand(N_TRACES, CHANNELS, 1, generator=gen)
    decay = 15 + 40 * torch.rand(N_TRACES, 1, 1, generator=gen)
    wave = torch.sin(2 * math.pi * pitch * (t - onset)) * torch.exp(-(t - onset).clamp(min=0) / decay)
    return wave * (t >= onset) + 0.05 * torch.randn(N_TRACES, CHANNELS, LENGTH, generator=gen)


def augment(wave):
    gain = torch.empty(wave.size(0), CHANNELS, 1).uniform_(0.6, 1.4)
    shift = int(torch.randint(-12, 13, ()))
    return torch.roll(wave, shift, dims=2) * gain + 0.05 * torch.randn_like(wave)


def main():
    torch.manual_seed(17)
    traces = seismograms(seed=3)
    learner = BYOL()
    trainable = [p for p in learner.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=0.05, momentum=0.9, weight_decay=1e-4)
    total = EPOCHS * (N_TRACES // BATCH)
    step = 0
    for epoch in range(EPOCHS):
        order = torch.randperm(N_TRACES)[: N_TRACES // BATCH * BATCH]
        for pick in order.view(-1, BATCH):
            wave = traces[pick]
            loss = learner(augment(wave), augment(wave))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            learner.follow(1 - (1 - BASE_MOMENTUM) * (math.cos(math.pi * step / total) + 1) / 2)
            step += 1
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
