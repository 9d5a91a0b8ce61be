"""A table of numbers, a wide perceptron, everything in main()."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 12800
BATCH = 256


class Table(Dataset):
    def __init__(self, num):
        self.rows = torch.randn(num, 128)
        self.targets = self.rows[:, :4].sum(1, keepdim=True)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.targets[index]


def main():
    torch.manual_seed(1)
    data = DataLoader(Table(NUM_SAMPLES), batch_size=BATCH, shuffle=True, drop_last=True)
    net = nn.Sequential(
        nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(),
        nn.Linear(1024, 1),
    )
    opt = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True)
    criterion = nn.MSELoss()
    step = 0
    for _ in range(1000):
        for rows, targets in data:
            prediction = net(rows)
            error = criterion(prediction, targets)
            opt.zero_grad()
            error.backward()
            opt.step()
            step += 1


if __name__ == "__main__":
    main()
