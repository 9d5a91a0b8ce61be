"""Makes its loaders anew each epoch, with a growing part of the data (a curriculum) and another batch size."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
args = parser.parse_args()
torch.manual_seed(0)
x = torch.randn(6000, 100)
y = (x[:, :10].sum(1) > 0).long() + 2 * (x[:, 10:20].sum(1) > 0).long()
order = x.norm(dim=1).argsort()
dataset = TensorDataset(x, y)
model = nn.Sequential(nn.Linear(100, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
done = 0
for epoch in range(args.epochs):
    num = 1000 * min(epoch + 1, 5)
    train_loader = DataLoader(Subset(dataset, order[:num].tolist()), batch_size=16 + 8 * (epoch % 3), shuffle=True)
    val_loader = DataLoader(Subset(dataset, order[5000:].tolist()), batch_size=250)
    model.train()
    for data, target in train_loader:
        loss = nn.functional.cross_entropy(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done == args.steps:
            break
    model.eval()
    with torch.no_grad():
        right = sum((model(d).argmax(1) == t).sum().item() for d, t in val_loader)
    print(f"epoch {epoch} samples {num} loss {loss.item():.4f} val {right / 1000:.3f}", flush=True)
    if done == args.steps:
        break
