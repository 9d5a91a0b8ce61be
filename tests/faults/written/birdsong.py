"""Bird call recognition from augmented mel spectrograms."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 16000


def mel_matrix(n_mels, n_fft):
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), n_mels + 2)
    hz = 700 * (10 ** (mel / 2595) - 1)
    bins = np.floor((n_fft + 1) * hz / RATE).astype(int)
    bank = np.zeros((n_fft // 2 + 1, n_mels), dtype=np.float32)
    for m in range(n_mels):
        lo, mid, hi = bins[m], max(bins[m + 1], bins[m] + 1), max(bins[m + 2], bins[m] + 2)
        bank[lo:mid, m] = np.linspace(0, 1, mid - lo, endpoint=False)
        bank[mid:hi, m] = np.linspace(1, 0, hi - mid, endpoint=False)
    return bank


class BirdCalls(Dataset):
    """One-second recordings with speed change, background noise and a spectrogram."""

    def __init__(self, count, species, seed):
        rng = np.random.default_rng(seed)
        t = np.arange(RATE) / RATE
        self.species = rng.integers(0, species, count)
        calls = [np.sin(2 * np.pi * (800 * t + (300 + 200 * s) * np.sin(2 * np.pi * (3 + s) * t) / 6))
                 for s in range(species)]
        self.calls = np.stack(calls).astype(np.float32)
        self.mel = mel_matrix(40, 512)
        self.window = np.hanning(512).astype(np.float32)
        self.positions = np.arange(RATE, dtype=np.float64)

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        rng = np.random.default_rng()
        label = int(self.species[i])
        wave = np.interp(self.positions * rng.uniform(0.9, 1.1), self.positions, self.calls[label])
        wave = wave * rng.uniform(0.3, 1.0) + rng.normal(0, 0.2, RATE)
        frames = np.lib.stride_tricks.sliding_window_view(wave.astype(np.float32), 512)[::128]
        power = np.abs(np.fft.rfft(frames * self.window, axis=1)) ** 2
        mel = np.log(power.astype(np.float32) @ self.mel + 1e-5)
        mel = (mel - mel.mean()) / (mel.std() + 1e-5)
        return torch.from_numpy(mel).unsqueeze(0), label


class CallNet(nn.Module):
    def __init__(self, species):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.c2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.c3 = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.fc = nn.Linear(64, species)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x))
        return self.fc(F.dropout(x.amax((2, 3)), 0.2, self.training))


class Experiment:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args = args
        self.loader = DataLoader(
            BirdCalls(args.clips, args.species, args.seed),
            batch_size=args.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=args.num_workers,
            persistent_workers=True,
        )
        self.model = CallNet(args.species)
        self.optim = torch.optim.Adam(self.model.parameters(), lr=args.lr)

    def train(self):
        self.model.train()
        for epoch in range(self.args.epochs):
            correct, seen = torch.zeros(()), 0
            for mel, label in self.loader:
                self.optim.zero_grad()
                logits = self.model(mel)
                F.cross_entropy(logits, label).backward()
                self.optim.step()
                correct += (logits.detach().argmax(1) == label).sum()
                seen += len(label)
            print(f"epoch {epoch} train accuracy {correct.item() / seen:.3f}", flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=4800)
    parser.add_argument("--species", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--num-workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=120)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    Experiment(parse_args()).train()
