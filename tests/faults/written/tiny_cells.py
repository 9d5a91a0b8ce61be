"""Cell phase classification from microscope crops."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

PHASES = 5
SIZE = 40


def microscope_crops(n, seed):
    rng = np.random.default_rng(seed)
    phase = rng.integers(0, PHASES, n)
    axis = np.linspace(-1, 1, SIZE)
    x, y = np.meshgrid(axis, axis)
    radius = 0.3 + 0.1 * phase[:, None, None] + rng.normal(0, 0.03, (n, 1, 1))
    body = np.clip(8 * (radius - np.hypot(x, y)), 0, 1)
    nucleus = np.clip(10 * (radius / 2 - np.hypot(x - 0.1, y)), 0, 1)
    image = np.stack([body, nucleus, 0.5 * body + 0.5 * nucleus], axis=1)
    image = image * 150 + rng.normal(40, 15, image.shape)
    return torch.from_numpy(np.clip(image, 0, 255).astype(np.uint8)), torch.from_numpy(phase)


class CellNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 24, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(48, 80, 3, stride=1, padding=1)
        self.fc = nn.Linear(80, PHASES)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.relu(self.conv3(x))
        return self.fc(x.mean((2, 3)))


class CropPreparation:
    def __init__(self, seed, pad=4):
        self.rng = np.random.default_rng(seed)
        self.pad = pad

    def illuminate(self, crop):
        low, high = np.percentile(crop, (1, 99), axis=(1, 2), keepdims=True)
        return (crop - low) / (high - low + 1e-3)

    def jitter(self, crop):
        p = self.pad
        padded = np.pad(crop, ((0, 0), (p, p), (p, p)), mode="reflect")
        top, left = self.rng.integers(0, 2 * p + 1, 2)
        crop = padded[:, top : top + SIZE, left : left + SIZE]
        if self.rng.random() < 0.5:
            crop = crop[:, :, ::-1]
        return np.rot90(crop, int(self.rng.integers(4)), axes=(1, 2))

    def __call__(self, batch):
        prepared = []
        for crop in batch.numpy():
            crop = self.illuminate(crop.astype(np.float32))
            crop = self.jitter(crop)
            crop = crop + self.rng.normal(0, 0.02, crop.shape)
            crop = (crop - crop.mean()) / (crop.std() + 1e-5)
            prepared.append(torch.from_numpy(np.ascontiguousarray(crop, dtype=np.float32)))
        return torch.stack(prepared)


def train(epochs=200, batch_size=48):
    dataset = TensorDataset(*microscope_crops(4800, seed=8))
    sampler = BatchSampler(RandomSampler(dataset), batch_size, drop_last=False)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    model = CellNet()
    prepare = CropPreparation(seed=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        correct, total = torch.zeros((), dtype=torch.long), 0
        for crops, phase in loader:
            inputs = prepare(crops)
            logits = model(inputs)
            loss = F.cross_entropy(logits, phase)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (logits.detach().argmax(1) == phase).sum()
            total += len(phase)
        scheduler.step()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {correct.item() / total:.3f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(8)
    train()
