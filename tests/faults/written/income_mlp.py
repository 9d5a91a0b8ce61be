"""Predict an income bracket from tabular, census-like features."""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_census(n_rows, n_cols, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n_rows, n_cols, generator=gen)
    w = torch.randn(n_cols, 3, generator=gen)
    hidden = torch.tanh(x @ w / math.sqrt(n_cols))
    score = hidden[:, 0] * hidden[:, 1] + hidden[:, 2]
    y = (score + 0.1 * torch.randn(n_rows, generator=gen) > 0).float()
    return x, y


def build_model(n_in, width, depth, dropout):
    layers = [nn.Linear(n_in, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout)]
    layers.append(nn.Linear(width, 1))
    return nn.Sequential(*layers)


def train_epoch(model, optimizer, scheduler, x, y, batch_size):
    model.train()
    total = torch.zeros(())
    chunks = torch.randperm(len(x)).split(batch_size)
    for idx in chunks:
        logits = model(x[idx]).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.detach()
    return total.item() / len(chunks)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x).squeeze(1)
    loss = F.binary_cross_entropy_with_logits(logits, y)
    accuracy = ((logits > 0) == (y > 0.5)).float().mean()
    return loss.item(), accuracy.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1500)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    x, y = make_census(66_000, 48, args.seed)
    x_train, y_train = x[:60_000], y[:60_000]
    x_val, y_val = x[60_000:], y[60_000:]

    model = build_model(x.shape[1], args.width, args.depth, dropout=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2, fused=True)
    steps = args.epochs * math.ceil(len(x_train) / args.batch_size)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)

    best = float("inf")
    for epoch in range(args.epochs):
        start = time.perf_counter()
        train_loss = train_epoch(model, optimizer, scheduler, x_train, y_train, args.batch_size)
        val_loss, val_acc = evaluate(model, x_val, y_val)
        best = min(best, val_loss)
        if epoch % 5 == 0:
            took = time.perf_counter() - start
            print(f"epoch {epoch:4d}  train {train_loss:.4f}  val {val_loss:.4f}  "
                  f"acc {val_acc:.3f}  best {best:.4f}  {took:.2f}s", flush=True)


if __name__ == "__main__":
    main()
