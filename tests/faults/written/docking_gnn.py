"""Predict docking scores with a dense message-passing network."""
import os
import tempfile

import torch
from torch import nn

CONFIG = {
    "graphs": 12_000,
    "atoms": 28,
    "kinds": 12,
    "dim": 128,
    "layers": 4,
    "batch": 48,
    "lr": 1e-3,
    "epochs": 300,
}


def random_complexes(cfg, seed):
    gen = torch.Generator().manual_seed(seed)
    n, a = cfg["graphs"], cfg["atoms"]
    kind = torch.randint(0, cfg["kinds"], (n, a), generator=gen)
    upper = torch.triu(torch.rand(n, a, a, generator=gen) < 0.12, diagonal=1)
    bond = upper | upper.transpose(1, 2)
    weight = torch.randn(cfg["kinds"], generator=gen)
    charge = weight[kind]
    score = torch.einsum("ni,nij,nj->n", charge, bond.float(), charge) / a
    return kind, bond, score


class Message(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own, self.neighbour = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.mix = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, adjacency):
        received = torch.bmm(adjacency, self.neighbour(h))
        return h + self.mix(torch.relu(self.norm(self.own(h) + received)))


class DockingNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.atom = nn.Embedding(cfg["kinds"], cfg["dim"])
        self.messages = nn.ModuleList([Message(cfg["dim"]) for _ in range(cfg["layers"])])
        self.read = nn.Sequential(nn.Linear(cfg["dim"], 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, kind, bond):
        adjacency = bond.float()
        adjacency = adjacency / adjacency.sum(dim=2, keepdim=True).clamp(min=1)
        h = self.atom(kind)
        for message in self.messages:
            h = message(h, adjacency)
        return self.read(h.sum(dim=1) / h.size(1)).squeeze(1)


def save(path, net, optimizer, epoch):
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


def main(cfg):
    torch.manual_seed(77)
    kind, bond, score = random_complexes(cfg, seed=78)
    net = DockingNet(cfg)
    optimizer = torch.optim.AdamW(net.parameters(), lr=cfg["lr"])
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=200)
    folder = tempfile.mkdtemp(prefix="docking_")
    loss_fn = nn.MSELoss()

    for epoch in range(cfg["epochs"]):
        for step, pick in enumerate(torch.randperm(cfg["graphs"]).split(cfg["batch"])):
            prediction = net(kind[pick], bond[pick])
            loss = loss_fn(prediction, score[pick])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
            optimizer.step()
            warmup.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} mse {loss.item():.4f} norm {norm.item():.3f}", flush=True)
        save(os.path.join(folder, f"epoch_{epoch % 3}.pt"), net, optimizer, epoch)


if __name__ == "__main__":
    main(CONFIG)
