"""Hogwild: the model's memory is shared, then forked processes train it at the same time without locks.

Several processes train at once and none of them is a rank; the parent evaluates at the end.
"""

import argparse
import os

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.view(-1, 320)))), dim=1)


def train(rank, args, model, dataset):
    torch.set_num_threads(1)
    torch.manual_seed(args.seed + rank)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.5)
    model.train()
    pid, step = os.getpid(), 0
    for epoch in range(1, args.epochs + 1):
        for batch_idx, (data, target) in enumerate(loader):
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            step += 1
            if batch_idx % 10 == 0:
                print(f"{pid}\tTrain Epoch: {epoch} [{batch_idx}/{len(loader)}]\tLoss: {loss.item():.6f}", flush=True)
            if step == args.steps:
                return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Hogwild training")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="stop each process after this many steps, 0 for all epochs")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--num-processes", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    prototypes = torch.randn(10, 1, 28, 28)
    labels = torch.randint(0, 10, (3000,))
    dataset = TensorDataset(prototypes[labels] + torch.randn(3000, 1, 28, 28), labels)
    mp.set_start_method("fork", force=True)
    model = Net()
    model.share_memory()  # gradients are allocated lazily, so they are not shared here
    processes = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model, dataset))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    model.eval()
    with torch.no_grad():
        x, y = dataset.tensors
        print(f"accuracy {(model(x[:500]).argmax(1) == y[:500]).float().mean().item():.3f}")
