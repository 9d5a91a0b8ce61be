"""Detect bearing wear from vibration recordings."""
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CHANNELS = ("axial", "radial", "tangential", "current", "speed", "temperature")
SAMPLES = 512
STATES = 4


def record_machines(folder, count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(SAMPLES) / SAMPLES
    for number in range(count):
        state = int(rng.integers(STATES))
        place = folder / f"rec_{number:05d}"
        place.mkdir()
        for k, channel in enumerate(CHANNELS):
            tone = np.sin(2 * np.pi * (9 + 6 * state + k) * t + rng.uniform(0, 6))
            np.save(place / f"{channel}.npy", (tone + rng.normal(0, 0.8, SAMPLES)).astype(np.float32))
        (place / "meta.json").write_text(json.dumps({"state": state, "rpm": int(rng.integers(900, 3000))}))
    return sorted(folder.iterdir())


class Recording:
    """One folder of a measurement campaign."""

    def __init__(self, place):
        self.place = place

    @property
    def meta(self):
        return json.loads((self.place / "meta.json").read_text())

    @property
    def signal(self):
        return np.stack([np.load(self.place / f"{channel}.npy") for channel in CHANNELS])


class WearDataset(Dataset):
    def __init__(self, places):
        self.recordings = [Recording(place) for place in places]

    def __len__(self):
        return len(self.recordings)

    def __getitem__(self, i):
        recording = self.recordings[i]
        meta = recording.meta
        signal = torch.from_numpy(recording.signal)
        return signal, meta["rpm"] / 3000.0, meta["state"]


class WearNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.c1 = nn.Conv1d(len(CHANNELS), width, 7, stride=2, padding=3)
        self.c2 = nn.Conv1d(width, 2 * width, 5, stride=2, padding=2)
        self.c3 = nn.Conv1d(2 * width, 2 * width, 5, padding=2)
        self.head = nn.Sequential(nn.Linear(2 * width + 1, 64), nn.ReLU(), nn.Linear(64, STATES))

    def forward(self, signal, rpm):
        x = F.relu(self.c1(signal))
        x = F.relu(self.c2(x))
        x = F.relu(self.c3(x)).mean(dim=2)
        return self.head(torch.cat([x, rpm.unsqueeze(1)], dim=1))


def main():
    torch.manual_seed(19)
    folder = Path(tempfile.mkdtemp(prefix="bearings_"))
    dataset = WearDataset(record_machines(folder, 640, seed=20))
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    net = WearNet()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=5e-4)
    for epoch in range(1_000):
        hits, seen = torch.zeros((), dtype=torch.long), 0
        for signal, rpm, state in loader:
            logits = net(signal, rpm.float())
            loss = F.cross_entropy(logits, state)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (logits.argmax(dim=1) == state).sum()
            seen += len(state)
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {hits.item() / seen:.3f}", flush=True)


if __name__ == "__main__":
    main()
