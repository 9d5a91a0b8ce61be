"""Anomaly mode left on, a loss built in a Python loop over the rows, and `.item()` twice a step."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.autograd.set_detect_anomaly(True)


def ranking_loss(scores, relevance):
    loss = 0.0
    for i in range(scores.shape[0]):
        row = F.log_softmax(scores[i], dim=0)
        loss = loss - (row * relevance[i]).sum() / relevance[i].sum()
    return loss / scores.shape[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(0)
    queries = torch.randn(4096, 48)
    relevance = torch.softmax(queries @ torch.randn(48, 20) * 2, dim=1)
    loader = DataLoader(TensorDataset(queries, relevance), batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 20))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    total, hits, step = 0.0, 0.0, 0
    while step < args.steps:
        for x, r in loader:
            optimizer.zero_grad()
            scores = model(x)
            loss = ranking_loss(scores, r)
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (scores.argmax(1) == r.argmax(1)).float().mean().item()
            step += 1
            if step % 20 == 0:
                print(f"step {step} loss {total / step:.4f} top1 {hits / step:.3f}", flush=True)
            if step >= args.steps:
                break


if __name__ == "__main__":
    main()
