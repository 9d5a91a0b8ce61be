"""Images, a small residual network, a plain script at module level."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

NUM_SAMPLES = 1536
BATCH = 32


class Pictures(Dataset):
    def __init__(self, num):
        generator = torch.Generator().manual_seed(0)
        self.labels = torch.randint(0, 10, (num,), generator=generator)
        self.pictures = torch.randn(num, 3, 32, 32, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.pictures[index], self.labels[index]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return x + F.relu(self.norm(self.first(x)))


torch.manual_seed(0)
loader = DataLoader(Pictures(NUM_SAMPLES), batch_size=BATCH, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), Block(32), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), Block(64),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
step = 0
for epoch in range(1000):
    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        loss = F.cross_entropy(output, y)
        loss.backward()
        optimizer.step()
        step += 1
    print(f"epoch {epoch} loss {loss.item():.3f}")
