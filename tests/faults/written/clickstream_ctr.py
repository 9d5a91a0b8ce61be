"""Click-through prediction straight from a shop's event log."""
import os
import random
import shlex
import tempfile
from datetime import datetime, timedelta
from urllib.parse import parse_qs

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

USERS, ITEMS, TRAIL = 600, 400, 6
DEVICES = ("old phone", "new phone", "tablet", "desk top")
SORTS = ("price", "rating", "newest")


def write_log(path, events, seed):
    rng = random.Random(seed)
    moment = datetime(2024, 3, 4)
    with open(path, "w") as log:
        for _ in range(events):
            moment += timedelta(seconds=rng.randrange(90))
            user, item, device = rng.randrange(USERS), rng.randrange(ITEMS), rng.choice(DEVICES)
            page, sort = rng.randrange(1, 10), rng.choice(SORTS)
            trail = ",".join(str(rng.randrange(ITEMS)) for _ in range(TRAIL))
            bought = int(rng.random() < 0.1 + 0.4 * ((user + item) % 3 == 0))
            log.write(f'{moment:%Y-%m-%d %H:%M:%S} user={user} item={item} device="{device}" '
                      f'query="page={page}&sort={sort}&src=mail" trail={trail} bought={bought}\n')


class EventStream(IterableDataset):
    """Yields one event per log line, with a small shuffle buffer."""

    def __init__(self, path, buffer=512, seed=0):
        self.path, self.buffer, self.rng = path, buffer, random.Random(seed)

    def parse(self, line):
        date, clock, *fields = shlex.split(line)
        record = dict(field.split("=", 1) for field in fields)
        moment = datetime.strptime(f"{date} {clock}", "%Y-%m-%d %H:%M:%S")
        query = parse_qs(record["query"])
        dense = [moment.hour / 23, moment.weekday() / 6, float(query["page"][0]) / 9]
        dense += [float(query["sort"][0] == sort) for sort in SORTS]
        sparse = [int(record["user"]), int(record["item"]), DEVICES.index(record["device"])]
        trail = [int(item) for item in record["trail"].split(",")]
        return np.array(dense, np.float32), np.array(sparse), np.array(trail), np.float32(record["bought"])

    def __iter__(self):
        held = []
        with open(self.path) as log:
            for line in log:
                held.append(line)
                if len(held) >= self.buffer:
                    yield self.parse(held.pop(self.rng.randrange(len(held))))


class ClickNet(nn.Module):
    def __init__(self, dim=32, width=768):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, dim), nn.Embedding(ITEMS, dim)
        self.device = nn.Embedding(len(DEVICES), 8)
        self.mlp = nn.Sequential(nn.Linear(3 * dim + 8 + 3 + len(SORTS), width), nn.ReLU(),
                                 nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, dense, sparse, trail):
        user, item, device = sparse.unbind(dim=1)
        seen = self.item(trail).mean(dim=1)
        x = torch.cat([self.user(user), self.item(item), self.device(device), seen, dense], dim=1)
        return self.mlp(x).squeeze(1)


def main():
    torch.manual_seed(13)
    path = os.path.join(tempfile.mkdtemp(prefix="clicks_"), "events.log")
    write_log(path, 40_000, seed=1)
    loader = DataLoader(EventStream(path), batch_size=128, drop_last=True)
    model = ClickNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(200):
        total, batches = torch.zeros(()), 0
        for dense, sparse, trail, bought in loader:
            loss = bce(model(dense, sparse, trail), bought.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            batches += 1
            if batches % 50 == 0:
                print(f"epoch {epoch} batch {batches} logloss {total.item() / batches:.4f}", flush=True)


if __name__ == "__main__":
    main()
