"""Synthetic spoken-keyword clips and their log spectrograms."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SAMPLE_RATE = 8000
WINDOW, HOP = 256, 128
N_BINS = 64


class KeywordClips(Dataset):
    def __init__(self, n_clips, n_words, seed):
        rng = np.random.default_rng(seed)
        self.words = rng.integers(0, n_words, n_clips)
        t = np.arange(SAMPLE_RATE, dtype=np.float32) / SAMPLE_RATE
        bank = [np.sin(2 * np.pi * (150 + 90 * w) * t * (1 + 0.2 * t)) for w in range(n_words)]
        self.bank = (np.stack(bank) * 12000).astype(np.int16)
        self.shift = rng.integers(0, 2000, n_clips)
        self.window = np.hanning(WINDOW).astype(np.float32)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        wave = self.bank[self.words[i]].astype(np.float32) / 32768.0
        wave = np.roll(wave, self.shift[i])
        frames = np.lib.stride_tricks.sliding_window_view(wave, WINDOW)[::HOP] * self.window
        power = np.abs(np.fft.rfft(frames, axis=1))[:, :N_BINS]
        spec = np.log1p(power).astype(np.float32)
        return torch.from_numpy(spec).unsqueeze(0), int(self.words[i])


def make_loaders(n_words, batch_size):
    train = DataLoader(
        KeywordClips(6400, n_words, seed=1),
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
        prefetch_factor=4,
    )
    val = DataLoader(KeywordClips(256, n_words, seed=2), batch_size=64, num_workers=1, persistent_workers=True)
    return train, val
