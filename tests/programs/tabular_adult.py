"""Tabular data: categorical columns as embeddings beside standardized numbers, an AUC after each epoch.

A data set that looks its row up in NumPy arrays and returns a dictionary for each sample, the default batch function, a
weighted sampler, cosine schedule by step, best weights kept by copying the state_dict.
"""

import argparse
import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument("--rows", type=int, default=12_000)
parser.add_argument("--lr", type=float, default=2e-3)
args = parser.parse_args()
np.random.seed(0)
torch.manual_seed(0)
CARDINALITIES = [9, 16, 7, 15, 6, 5, 42]


class Rows(Dataset):
    def __init__(self, categories, numbers, labels):
        self.categories, self.numbers, self.labels = categories, numbers, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {
            "categories": torch.tensor(self.categories[index], dtype=torch.long),
            "numbers": torch.tensor((self.numbers[index] - self.mean) / self.std, dtype=torch.float32),
            "label": torch.tensor(self.labels[index], dtype=torch.float32),
        }

    def standardize(self, mean, std):
        self.mean, self.std = mean, std
        return self


def make(num):
    categories = np.stack([np.random.randint(0, size, num) for size in CARDINALITIES], 1)
    numbers = np.random.lognormal(0, 1, (num, 6))
    effects = [np.random.normal(0, 0.7, size) for size in CARDINALITIES]
    score = sum(effect[column] for effect, column in zip(effects, categories.T)) + np.log(numbers[:, 0]) - 0.4 * np.log(numbers[:, 1])
    return categories, numbers, (score + np.random.logistic(0, 0.5, num) > 1).astype(np.float64)


class Net(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, min(16, (size + 1) // 2)) for size in CARDINALITIES)
        inputs = sum(e.embedding_dim for e in self.embeddings) + 6
        self.layers = nn.Sequential(
            nn.BatchNorm1d(inputs), nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, categories, numbers):
        embedded = [embedding(categories[:, i]) for i, embedding in enumerate(self.embeddings)]
        return self.layers(torch.cat([*embedded, numbers], 1)).squeeze(1)


def auc(scores, labels):
    order = np.argsort(scores)
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = labels == 1
    return (ranks[positive].mean() - (positive.sum() + 1) / 2) / max(1, (~positive).sum())


categories, numbers, labels = make(args.rows)
split = int(0.8 * args.rows)
mean, std = numbers[:split].mean(0), numbers[:split].std(0)
train_set = Rows(categories[:split], numbers[:split], labels[:split]).standardize(mean, std)
valid_set = Rows(categories[split:], numbers[split:], labels[split:]).standardize(mean, std)
weights = np.where(labels[:split] == 1, 1 / max(1, (labels[:split] == 1).sum()), 1 / (labels[:split] == 0).sum())
train_loader = DataLoader(train_set, args.batch_size, sampler=WeightedRandomSampler(weights, split), drop_last=True)
valid_loader = DataLoader(valid_set, 1024)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(train_loader))
best, best_auc, done = None, 0.0, 0
for epoch in range(args.epochs):
    net.train()
    running = 0.0
    for batch in train_loader:
        loss = nn.functional.binary_cross_entropy_with_logits(net(batch["categories"], batch["numbers"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item()
        done += 1
        if done == args.steps:
            break
    net.eval()
    with torch.no_grad():
        scores = torch.cat([net(b["categories"], b["numbers"]) for b in valid_loader]).numpy()
    now = auc(scores, labels[split:])
    if now > best_auc:
        best, best_auc = copy.deepcopy(net.state_dict()), now
    print(f"epoch {epoch} loss {running / len(train_loader):.4f} auc {now:.4f}", flush=True)
    if done == args.steps:
        break
net.load_state_dict(best)
