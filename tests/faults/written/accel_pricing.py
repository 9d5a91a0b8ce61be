"""House price regression with accelerate; keeps a run journal next to the outputs."""
import json
import os
import tempfile
from collections import deque

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

HP = dict(rows=24_000, features=40, width=512, batch_size=256, lr=1e-3, epochs=400, seed=5)


class RunJournal:
    """A readable record of the recent part of a run."""

    def __init__(self, folder, hyperparameters, keep=500):
        self.path = os.path.join(folder, "journal.json")
        self.hyperparameters = hyperparameters
        self.entries = deque(maxlen=keep)
        self.best = {}

    def record(self, **values):
        self.entries.append(values)
        for name, value in values.items():
            self.best[name] = min(value, self.best.get(name, value))
        self.write()

    def write(self):
        document = {"config": self.hyperparameters, "best": self.best, "entries": list(self.entries)}
        with open(self.path, "w") as handle:
            json.dump(document, handle, indent=2, sort_keys=True)
            handle.flush()
            os.fsync(handle.fileno())


class PriceNet(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(features, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, width), nn.ELU()
        )
        self.price = nn.Linear(width, 1)
        self.spread = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.price(h).squeeze(-1), nn.functional.softplus(self.spread(h)).squeeze(-1) + 1e-3


def houses(rows, features):
    x = torch.randn(rows, features)
    price = x[:, 0] * 2 + torch.sin(3 * x[:, 1]) + x[:, 2] * x[:, 3] + 0.2 * torch.randn(rows)
    return TensorDataset(x, price)


def make_loader(dataset, batch_size):
    sampler = BatchSampler(RandomSampler(dataset), batch_size, drop_last=True)
    return DataLoader(dataset, sampler=sampler, batch_size=None)


def main():
    torch.manual_seed(HP["seed"])
    accelerator = Accelerator(cpu=True)
    loader = make_loader(houses(HP["rows"], HP["features"]), HP["batch_size"])
    model = PriceNet(HP["features"], HP["width"])
    optimizer = torch.optim.NAdam(model.parameters(), lr=HP["lr"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, HP["epochs"])
    model, optimizer = accelerator.prepare(model, optimizer)
    journal = RunJournal(tempfile.mkdtemp(prefix="pricing_"), HP)
    nll = nn.GaussianNLLLoss()

    step = 0
    for epoch in range(HP["epochs"]):
        for x, price in loader:
            mean, spread = model(x)
            loss = nll(mean, price, spread**2)
            optimizer.zero_grad()
            accelerator.backward(loss)
            norm = accelerator.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            journal.record(step=step, epoch=epoch, loss=loss.item(), grad_norm=norm.item(),
                           lr=scheduler.get_last_lr()[0])
            step += 1
        scheduler.step()
        accelerator.print(f"epoch {epoch} nll {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
