"""Raises in the forward at step 5: a shape that does not fit; exit code 1, a traceback of several frames."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(x)


def train(model, optimizer, batches):
    for step, x in enumerate(batches, start=1):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    net = Net()
    batches = [torch.randn(32, 16) for _ in range(4)] + [torch.randn(32, 15)]
    train(net, torch.optim.SGD(net.parameters(), lr=0.1), batches)
