"""Few-recording gesture recognition from wrist accelerometer windows."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CONFIG = {
    "recordings": 256,
    "window": 96,
    "channels": 9,
    "gestures": 7,
    "batch_size": 32,
    "workers": 2,
    "epochs": 3000,
    "lr": 2e-3,
    "report_every": 10,
}


class GestureWindows(Dataset):
    def __init__(self, cfg, seed=0):
        rng = np.random.default_rng(seed)
        self.window = cfg["window"]
        self.labels = rng.integers(0, cfg["gestures"], cfg["recordings"])
        t = np.linspace(0, 1, 2 * self.window, dtype=np.float32)
        phase = rng.uniform(0, 6, (cfg["recordings"], cfg["channels"], 1)).astype(np.float32)
        rate = (self.labels[:, None, None] + 1).astype(np.float32)
        self.signal = np.sin(6.28 * rate * t + phase).astype(np.float32)
        self.signal += rng.normal(0, 0.4, self.signal.shape).astype(np.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        start = np.random.randint(self.window)
        window = self.signal[i, :, start : start + self.window]
        return torch.from_numpy(window.copy()), int(self.labels[i])


class SeparableBlock(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 5, padding=2 * dilation, dilation=dilation)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


class GestureNet(nn.Module):
    def __init__(self, cfg, width=64):
        super().__init__()
        self.embed = nn.Conv1d(cfg["channels"], width, 1)
        self.blocks = nn.Sequential(*[SeparableBlock(width, d) for d in (1, 2, 4)])
        self.head = nn.Linear(width, cfg["gestures"])

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)).mean(-1))


def run_epoch(model, loader, optimizer, criterion):
    hits = torch.zeros(())
    for signal, label in loader:
        logits = model(signal)
        loss = criterion(logits, label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        hits += (logits.detach().argmax(1) == label).sum()
    return hits


def main(cfg):
    torch.manual_seed(1)
    dataset = GestureWindows(cfg)
    loader = DataLoader(
        dataset,
        batch_size=cfg["batch_size"],
        shuffle=True,
        num_workers=cfg["workers"],
    )
    model = GestureNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=0.02)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=100)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(cfg["epochs"]):
        hits = run_epoch(model, loader, optimizer, criterion)
        scheduler.step()
        if epoch % cfg["report_every"] == 0:
            print(f"epoch {epoch} accuracy {hits.item() / len(dataset):.3f}", flush=True)


if __name__ == "__main__":
    main(CONFIG)
