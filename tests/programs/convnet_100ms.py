"""A convolutional network whose step takes about 100 ms on two cores and spends it in a few large operations.

Synthetic pictures made up front; one loader; cosine schedule by step.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def conv_bn(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Residual(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return x + self.module(x)


def make_net(width=32, classes=10):
    return nn.Sequential(
        conv_bn(3, width),
        conv_bn(width, width * 2, 2),
        Residual(nn.Sequential(conv_bn(width * 2, width * 2), conv_bn(width * 2, width * 2))),
        conv_bn(width * 2, width * 4, 2),
        Residual(nn.Sequential(conv_bn(width * 4, width * 4), conv_bn(width * 4, width * 4))),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(width * 4, classes),
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--width", type=int, default=24)
    p.add_argument("--lr", type=float, default=0.05)
    args = p.parse_args()
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (1024,))
    images = torch.randn(1024, 3, 32, 32) * 0.5 + labels.view(-1, 1, 1, 1) * 0.1
    loader = DataLoader(TensorDataset(images, labels), args.batch_size, shuffle=True, drop_last=True)
    net = make_net(args.width)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.steps)
    loss_fn = nn.CrossEntropyLoss()
    net.train()
    step = 0
    while step < args.steps:
        for x, y in loader:
            loss = loss_fn(net(x), y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            sched.step()
            step += 1
            if step % 10 == 0:
                print(f"[{step}/{args.steps}] loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.4f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
