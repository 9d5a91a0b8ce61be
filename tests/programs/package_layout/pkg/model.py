"""The network."""

from torch import nn


def build(hidden, depth, classes=3):
    layers = [nn.Linear(2, hidden), nn.SiLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(hidden, hidden), nn.SiLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, classes))
