"""Seeding and bookkeeping."""

import random

import numpy as np
import torch


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Smoothed:
    def __init__(self, momentum=0.9):
        self.momentum, self.value = momentum, None

    def __call__(self, x):
        self.value = x if self.value is None else self.momentum * self.value + (1 - self.momentum) * x
        return self.value
