"""Machine sound recordings from two sites with different recorders."""
import numpy as np
import torch
from torch.utils.data import Dataset

TARGET_RATE = 2000
SITES = [
    {"name": "north", "rate": 2000},
    {"name": "south", "rate": 32000},
]


def low_pass(factor):
    """Windowed-sinc filter applied before keeping every factor-th sample."""
    taps = 8 * factor + 1
    n = np.arange(taps) - taps // 2
    kernel = np.sinc(n / factor) * np.hamming(taps)
    return (kernel / kernel.sum()).astype(np.float32)


class SiteRecordings(Dataset):
    """One second of sound per item, at a common rate."""

    def __init__(self, site, count, seed):
        rng = np.random.default_rng(seed)
        self.rate = SITES[site]["rate"]
        self.labels = rng.integers(0, 4, count)
        t = np.arange(self.rate) / self.rate
        waves = np.empty((count, self.rate), dtype=np.int16)
        for i, label in enumerate(self.labels):
            tone = np.sin(2 * np.pi * (60 + 45 * label) * t + rng.uniform(0, 6))
            waves[i] = (tone + 0.3 * rng.standard_normal(self.rate)) * 8000
        self.waves = waves
        self.factor = self.rate // TARGET_RATE
        self.kernel = low_pass(self.factor)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wave = self.waves[i].astype(np.float32) / 32768.0
        if self.factor > 1:
            wave = np.convolve(wave, self.kernel, mode="same")[:: self.factor]
        return torch.from_numpy(np.ascontiguousarray(wave)).unsqueeze(0), int(self.labels[i])
