"""A plain CNN loop with an evaluation between epochs, checkpoints, a CSV log and a JSON summary.

The data set lies in memory; the loss is computed outside the model; the learning rate falls by epoch.
Writes `runs/cnn/{best.pt,last.pt,log.csv,summary.json}` below the current folder.
"""

import argparse
import csv
import json
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Noisy 1x28x28 pictures with a bright bar whose place tells the class."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 10, (n,), generator=g)
        self.images = torch.randn(n, 1, 28, 28, generator=g) * 0.6
        for i, label in enumerate(self.labels.tolist()):
            self.images[i, 0, 2 * label + 2 : 2 * label + 5] += 0.4

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(4608, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)


def train(args, model, device, train_loader, optimizer, epoch, done):
    model.train()
    total = 0.0
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item()
        done += 1
        if batch_idx % args.log_interval == 0:
            print(
                "Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                    epoch,
                    batch_idx * len(data),
                    len(train_loader.dataset),
                    100.0 * batch_idx / len(train_loader),
                    loss.item(),
                )
            )
        if args.steps and done >= args.steps:
            break
    return total / (batch_idx + 1), done


def evaluate(model, device, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    test_loss /= len(test_loader.dataset)
    accuracy = correct / len(test_loader.dataset)
    print(f"\nTest set: Average loss: {test_loss:.4f}, Accuracy: {100.0 * accuracy:.1f}%\n")
    return test_loss, accuracy


def main():
    parser = argparse.ArgumentParser(description="Small image classifier")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10)
    parser.add_argument("--out", default="runs/cnn")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(Shapes(args.samples, 0), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(Shapes(args.samples // 4, 1), batch_size=256)
    model = Net().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=args.gamma)

    os.makedirs(args.out, exist_ok=True)
    history, best, done = [], 0.0, 0
    with open(os.path.join(args.out, "log.csv"), "w", newline="") as f:
        writer = csv.DictWriter(f, ["epoch", "train_loss", "test_loss", "accuracy", "seconds"])
        writer.writeheader()
        for epoch in range(1, args.epochs + 1):
            start = time.time()
            train_loss, done = train(args, model, device, train_loader, optimizer, epoch, done)
            test_loss, accuracy = evaluate(model, device, test_loader)
            scheduler.step()
            row = dict(epoch=epoch, train_loss=train_loss, test_loss=test_loss, accuracy=accuracy, seconds=time.time() - start)
            writer.writerow(row)
            f.flush()
            history.append(row)
            torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(args.out, "last.pt"))
            if accuracy >= best:
                best = accuracy
                torch.save(model.state_dict(), os.path.join(args.out, "best.pt"))
            if args.steps and done >= args.steps:
                break
    with open(os.path.join(args.out, "summary.json"), "w") as f:
        json.dump({"best": best, "history": history, "args": vars(args)}, f, indent=2)
    print(f"best accuracy {best:.3f}")


if __name__ == "__main__":
    main()
