"""Contrastive pretraining on tabular sensor rows (two corrupted views per row)."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Setup:
    rows: int = 30_000
    columns: int = 60
    width: int = 512
    embedding: int = 96
    batch: int = 96
    temperature: float = 0.2
    corruption: float = 0.3
    lr: float = 1e-3
    epochs: int = 200


def make_table(setup):
    clusters = torch.randn(25, setup.columns) * 1.5
    member = torch.randint(0, 25, (setup.rows,))
    return clusters[member] + torch.randn(setup.rows, setup.columns), member


class Corrupter:
    """Replaces a random subset of cells by values drawn from other rows."""

    def __init__(self, table, rate):
        self.table, self.rate = table, rate

    def __call__(self, x):
        donors = self.table[torch.randint(0, len(self.table), (len(x),))]
        return torch.where(torch.rand_like(x) < self.rate, donors, x)


class Projector(nn.Module):
    def __init__(self, setup):
        super().__init__()
        w = setup.width
        self.encoder = nn.Sequential(
            nn.Linear(setup.columns, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU()
        )
        self.project = nn.Sequential(nn.Linear(w, w), nn.ReLU(), nn.Linear(w, setup.embedding))

    def forward(self, x):
        return F.normalize(self.project(self.encoder(x)), dim=1)


class NTXent(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        z = torch.cat([a, b])
        n = len(a)
        terms = []
        for i in range(2 * n):
            partner = i + n if i < n else i - n
            similarity = (z @ z[i]) / self.temperature
            others = torch.cat([similarity[:i], similarity[i + 1 :]])
            terms.append(torch.logsumexp(others, dim=0) - similarity[partner])
        return torch.stack(terms).mean()


@torch.no_grad()
def neighbour_purity(model, table, member, probe=500):
    model.eval()
    z = model(table[:2000])
    similarity = z[:probe] @ z.t()
    similarity.fill_diagonal_(-1)
    nearest = similarity.argmax(1)
    model.train()
    return (member[nearest] == member[:probe]).float().mean().item()


def pretrain(setup):
    torch.manual_seed(19)
    table, member = make_table(setup)
    corrupt = Corrupter(table, setup.corruption)
    model = Projector(setup)
    criterion = NTXent(setup.temperature)
    optimizer = torch.optim.Adam(model.parameters(), lr=setup.lr, weight_decay=1e-6, fused=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, setup.epochs)
    for epoch in range(setup.epochs):
        shuffled = torch.randperm(setup.rows)
        for start in range(0, setup.rows - setup.batch, setup.batch):
            rows = table[shuffled[start : start + setup.batch]]
            loss = criterion(model(corrupt(rows)), model(corrupt(rows)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if start % (setup.batch * 60) == 0:
                print(f"epoch {epoch} row {start} nt-xent {loss.item():.4f}", flush=True)
        scheduler.step()
        print(f"epoch {epoch} purity {neighbour_purity(model, table, member):.3f}", flush=True)


if __name__ == "__main__":
    pretrain(Setup())
