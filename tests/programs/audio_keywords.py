"""Keyword spotting on raw audio: WAV files read by the standard library, a log spectrogram for each sample, 1D convolutions.

Time shift and noise as augmentation, the spectrogram in the data set's `__getitem__`, label smoothing, gradient clipping, an
accuracy by `.item()` each step.
"""

import argparse
import math
import os
import random
import wave

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE, WORDS = 8000, ["yes", "no", "up", "down", "left", "right"]


class Keywords(Dataset):
    def __init__(self, folder, augment):
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".wav"))
        self.augment = augment
        self.window = torch.hann_window(256)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with wave.open(self.files[i]) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16)
        audio = torch.from_numpy(samples.astype(np.float32) / 32768)
        if self.augment:
            audio = torch.roll(audio, random.randint(-400, 400))
            audio = audio + 0.01 * random.random() * torch.randn_like(audio)
        spectrum = torch.stft(audio, 256, 128, window=self.window, return_complex=True).abs()
        return torch.log(spectrum + 1e-4), int(os.path.basename(self.files[i])[0])


class TinyKWS(nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        layers, width = [], 129
        for dilation in (1, 2, 4, 8):
            layers += [nn.Conv1d(width, channels, 5, padding=2 * dilation, dilation=dilation), nn.BatchNorm1d(channels), nn.GELU()]
            width = channels
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(channels, len(WORDS))

    def forward(self, x):
        return self.head(self.body(x).mean(2))


def make_files(folder, num):
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(0)
    t = np.arange(RATE) / RATE
    for i in range(num):
        label = int(rng.integers(len(WORDS)))
        tone = sum(np.sin(2 * math.pi * (200 + 130 * label) * k * t + rng.uniform(0, 6)) / k for k in (1, 2, 3))
        sound = tone * np.exp(-((t - rng.uniform(0.3, 0.7)) ** 2) / 0.02) + rng.normal(0, 0.3, RATE)
        with wave.open(os.path.join(folder, f"{label}_{i:04d}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes((np.clip(sound / 4, -1, 1) * 32767).astype(np.int16).tobytes())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--files", type=int, default=800)
    p.add_argument("--out", default="runs/audio")
    args = p.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    make_files(os.path.join(args.out, "wav"), args.files)
    loader = DataLoader(
        Keywords(os.path.join(args.out, "wav"), augment=True), batch_size=args.batch_size, shuffle=True,
        num_workers=args.workers, drop_last=True,
    )  # fmt: skip
    model = TinyKWS()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    done = 0
    for epoch in range(args.epochs):
        correct = seen = 0
        for features, labels in loader:
            outputs = model(features)
            loss = criterion(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            correct += (outputs.argmax(1) == labels).sum().item()
            seen += len(labels)
            done += 1
            if done % 10 == 0:
                print(f"epoch {epoch} step {done} loss {loss.item():.4f} accuracy {correct / seen:.3f}", flush=True)
            if done == args.steps:
                return
        torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, os.path.join(args.out, "last.pt"))


if __name__ == "__main__":
    main()
