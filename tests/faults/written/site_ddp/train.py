"""Train one sound model on two sites; each process reads the recordings of its own site."""
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from data import SITES, SiteRecordings


class SoundNet(nn.Module):
    def __init__(self, classes=4, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 25, stride=4, padding=12), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 9, stride=4, padding=4), nn.BatchNorm1d(2 * width), nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 9, stride=2, padding=4), nn.BatchNorm1d(2 * width), nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, classes)

    def forward(self, wave):
        return self.head(self.net(wave).mean(-1))


def train(args, rank, world):
    torch.manual_seed(args.seed)
    site = rank % len(SITES)
    dataset = SiteRecordings(site, args.recordings, seed=args.seed + rank)
    loader = DataLoader(dataset, batch_size=args.batch, shuffle=True, drop_last=True)
    model = DistributedDataParallel(SoundNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02 * world, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        model.train()
        total = torch.zeros(())
        for wave, label in loader:
            loss = F.cross_entropy(model(wave), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        scheduler.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / (world * len(loader)):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recordings", type=int, default=960)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    try:
        train(args, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
