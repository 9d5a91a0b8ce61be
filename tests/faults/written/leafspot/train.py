"""Grade leaf disease severity."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader

from data import LeafSpots


class ConvBNAct(nn.Sequential):
    def __init__(self, cin, cout, stride):
        super().__init__(
            nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.1, True)
        )


class LeafNet(nn.Module):
    def __init__(self, grades):
        super().__init__()
        self.body = nn.Sequential(
            ConvBNAct(3, 24, 2), ConvBNAct(24, 48, 2), ConvBNAct(48, 96, 2), ConvBNAct(96, 96, 1)
        )
        self.head = nn.Linear(96, grades)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def fit(args):
    torch.manual_seed(args.seed)
    train_set = LeafSpots(1600, seed=args.seed)
    test_set = LeafSpots(128, augment=False, seed=args.seed + 50)
    loader = DataLoader(train_set, batch_size=args.batch, shuffle=True, num_workers=args.workers)
    test_x = torch.stack([test_set[i][0] for i in range(len(test_set))])
    test_y = torch.tensor([test_set[i][1] for i in range(len(test_set))])

    net = LeafNet(4)
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=args.epochs)
    for epoch in range(args.epochs):
        net.train()
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 25 == 0:
                print(f"{epoch:03d}/{i:03d} loss {loss.item():.4f}", flush=True)
        sched.step()
        net.eval()
        with torch.inference_mode():
            accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
        print(f"epoch {epoch} test accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seed", type=int, default=6)
    fit(parser.parse_args())
