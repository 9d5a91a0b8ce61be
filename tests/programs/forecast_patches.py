"""Time series forecasting in the manner of long-horizon benchmarks: windows of a CSV, patches, a small transformer encoder.

Windows are cut and scaled per sample in `__getitem__`; attention is written out with softmax; MAE and MSE are gathered in
lists of NumPy arrays; early stopping with a checkpoint; the learning rate halves every epoch.
"""

import argparse
import math
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, path, part, seq_len, pred_len):
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        cut = int(0.8 * len(table))
        mean, std = table[:cut].mean(0), table[:cut].std(0)
        self.data = (table[:cut] if part == "train" else table[cut - seq_len :]) - mean
        self.data = self.data / std
        self.seq_len, self.pred_len = seq_len, pred_len

    def __len__(self):
        return len(self.data) - self.seq_len - self.pred_len + 1

    def __getitem__(self, i):
        middle = i + self.seq_len
        return torch.tensor(self.data[i:middle]).float(), torch.tensor(self.data[middle : middle + self.pred_len]).float()


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(dim // heads)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        B, L, D = x.shape
        q, k, v = (layer(x).view(B, L, self.heads, -1) for layer in (self.query, self.key, self.value))
        scores = torch.einsum("blhe,bshe->bhls", q, k)
        weights = self.dropout(torch.softmax(self.scale * scores, dim=-1))
        return self.out(torch.einsum("bhls,bshd->blhd", weights, v).reshape(B, L, D))


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(dim, heads), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.feed(x))


class PatchForecaster(nn.Module):
    def __init__(self, seq_len, pred_len, patch=8, dim=64, heads=4, depth=2):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, dim)
        self.position = nn.Parameter(torch.zeros(1, seq_len // patch, dim))
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(depth)))
        self.head = nn.Linear(dim * (seq_len // patch), pred_len)

    def forward(self, x):
        mean = x.mean(1, keepdim=True).detach()
        x = x - mean
        B, L, C = x.shape
        patches = x.permute(0, 2, 1).reshape(B * C, L // self.patch, self.patch)
        hidden = self.layers(self.embed(patches) + self.position)
        return self.head(hidden.flatten(1)).view(B, C, -1).permute(0, 2, 1) + mean


def make_csv(path, num=2600, columns=7):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rng, t = np.random.default_rng(0), np.arange(num)[:, None]
    periods, phases = rng.uniform(12, 96, (1, columns)), rng.uniform(0, 6, (1, columns))
    series = np.sin(2 * math.pi * t / periods + phases) + 0.5 * np.sin(2 * math.pi * t / 168) + rng.normal(0, 0.2, (num, columns))
    np.savetxt(path, series, delimiter=",", header=",".join(f"x{i}" for i in range(columns)), comments="", fmt="%.5f")


def evaluate(model, loader, criterion):
    model.eval()
    losses, absolute = [], []
    with torch.no_grad():
        for batch_x, batch_y in loader:
            outputs = model(batch_x)
            losses.append(criterion(outputs, batch_y).item())
            absolute.append(np.abs(outputs.numpy() - batch_y.numpy()).mean())
    model.train()
    return np.average(losses), np.average(absolute)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--train_epochs", type=int, default=2)
    p.add_argument("--steps", type=int, default=0, help="stop after this many steps, 0 for all epochs")
    p.add_argument("--seq_len", type=int, default=96)
    p.add_argument("--pred_len", type=int, default=24)
    p.add_argument("--batch_size", type=int, default=16)
    p.add_argument("--patience", type=int, default=3)
    p.add_argument("--num_workers", type=int, default=0)
    p.add_argument("--out", default="runs/forecast")
    args = p.parse_args()
    torch.manual_seed(2021)
    csv = os.path.join(args.out, "series.csv")
    make_csv(csv)
    train_set, valid_set = (Windows(csv, part, args.seq_len, args.pred_len) for part in ("train", "valid"))
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True, num_workers=args.num_workers, drop_last=True)
    valid_loader = DataLoader(valid_set, args.batch_size, shuffle=False, num_workers=args.num_workers)
    model = PatchForecaster(args.seq_len, args.pred_len)
    model_optim = torch.optim.Adam(model.parameters(), lr=5e-4)
    criterion = nn.MSELoss()
    best, waited, done = float("inf"), 0, 0
    for epoch in range(args.train_epochs):
        train_loss = []
        for batch_x, batch_y in train_loader:
            model_optim.zero_grad()
            loss = criterion(model(batch_x), batch_y)
            train_loss.append(loss.item())
            loss.backward()
            model_optim.step()
            done += 1
            if done == args.steps:
                break
        valid_loss, valid_mae = evaluate(model, valid_loader, criterion)
        print(f"Epoch: {epoch + 1} | Train Loss: {np.average(train_loss):.7f} Vali Loss: {valid_loss:.7f} MAE: {valid_mae:.7f}", flush=True)
        if done == args.steps:
            break
        if valid_loss < best:
            best, waited = valid_loss, 0
            torch.save(model.state_dict(), os.path.join(args.out, "checkpoint.pth"))
        else:
            waited += 1
            if waited >= args.patience:
                break
        for group in model_optim.param_groups:
            group["lr"] = 5e-4 * 0.5**epoch
