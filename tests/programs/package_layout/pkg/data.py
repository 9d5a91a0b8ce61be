"""The spiral data set and its loaders."""

import math

import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


def spirals(n, classes=3, turns=1.5):
    label = torch.arange(n) % classes
    r = torch.rand(n)
    angle = r * turns * 2 * math.pi + label * 2 * math.pi / classes + 0.1 * torch.randn(n)
    return TensorDataset(torch.stack([r * angle.cos(), r * angle.sin()], 1), label)


def get_loaders(batch_size, n=6000):
    train, val = random_split(spirals(n), [n - n // 6, n // 6])
    return DataLoader(train, batch_size, shuffle=True), DataLoader(val, 512)
