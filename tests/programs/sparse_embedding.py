"""Sparse gradients: an EmbeddingBag with SparseAdam, and `--optimizer sgd` for SGD, whose fused form refuses them.

Bags of very different size, given as flat indices and offsets by a hand-written batch function; no loader.
"""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
parser.add_argument("--optimizer", choices=["sparse_adam", "sgd"], default="sparse_adam")
args = parser.parse_args()
torch.manual_seed(0)
ROWS, DIM = 50_000, 32


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.EmbeddingBag(ROWS, DIM, mode="mean", sparse=True)
        self.users = nn.Embedding(2000, DIM, sparse=True)
        self.tower = nn.Sequential(nn.Linear(2 * DIM, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, user, indices, offsets):
        return self.tower(torch.cat([self.items(indices, offsets), self.users(user)], 1)).squeeze(1)


def get_batch(size=128):
    lengths = torch.randint(1, 40, (size,))
    indices = torch.randint(0, ROWS, (int(lengths.sum()),))
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])
    user = torch.randint(0, 2000, (size,))
    first = indices[offsets]
    return user, indices, offsets, ((first + user) % 2 == 0).float()


model = Recommender()
sparse = [*model.items.parameters(), *model.users.parameters()]
if args.optimizer == "sgd":
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1)]
else:
    optimizers = [torch.optim.SparseAdam(sparse, lr=1e-2), torch.optim.Adam(model.tower.parameters(), lr=1e-3)]
for step in range(1, args.steps + 1):
    user, indices, offsets, clicked = get_batch()
    loss = nn.functional.binary_cross_entropy_with_logits(model(user, indices, offsets), clicked)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}", flush=True)
