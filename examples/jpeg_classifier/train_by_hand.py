"""The classifier of train.py, tuned by hand with the knobs of the first optimizations; the yardstick for the tool.

Same data, same model, same loss, same optimizer; what differs is marked "by hand". Start it with the allocator
told to keep its memory (no page faults for large buffers) and with barriers that do not spin:

    export OMP_WAIT_POLICY=PASSIVE
    export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_TOP_PAD_=67108864
    python train_by_hand.py

What was tried and not kept stands in README.md with its ratio.
"""

import argparse
import csv
import random
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from make_data import make
from train import Network, Pictures, weighted_loss

# By hand: bfloat16 pays only where the processor has instructions for it; without them it was 5 times slower.
FAST_BF16 = torch.cpu._is_avx512_bf16_supported()
HERE = Path(__file__).resolve().parent


def evaluate(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(1) == labels).sum().item()
            total += len(labels)
    return right / total


def main():
    parser = argparse.ArgumentParser(description="Train the picture classifier.")
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--out", type=Path, default=HERE / "runs")
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=0, help="stop after this many steps (0: no limit)")
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # by hand: with two loader workers on two cores, a second thread only waits

    if not args.data.exists():
        print(f"drawing the pictures into {args.data} ...", flush=True)
        make(args.data)
    train_set = Pictures(args.data / "train", args.size, train=True)
    val_set = Pictures(args.data / "val", args.size, train=False)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=2,  # by hand: decoding beside training
        persistent_workers=True,
        prefetch_factor=4,
    )
    val_loader = DataLoader(val_set, batch_size=64)

    model = Network(len(train_set.classes), args.width, args.depth)
    model = model.to(memory_format=torch.channels_last)  # by hand
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01, fused=True)  # by hand: fused
    counts = np.bincount([label for _, label in train_set.files], minlength=len(train_set.classes))
    weights = torch.tensor(counts.mean() / counts, dtype=torch.float32)

    args.out.mkdir(parents=True, exist_ok=True)
    log = csv.writer((args.out / "log.csv").open("w", newline=""))
    log.writerow(["epoch", "loss", "train_accuracy", "val_accuracy", "seconds"])
    step = 0
    for epoch in range(args.epochs):
        start, losses, right, seen = time.time(), 0.0, 0, 0
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            images = images.to(memory_format=torch.channels_last)  # by hand
            with torch.autocast("cpu", torch.bfloat16, enabled=FAST_BF16):  # by hand
                outputs = model(images)
            outputs = outputs.float()
            loss = weighted_loss(outputs, labels, weights)
            loss.backward()
            optimizer.step()
            losses += loss.item() * len(labels)
            right += (outputs.argmax(1) == labels).sum().item()
            seen += len(labels)
            step += 1
            if step % 20 == 0:
                print(f"epoch {epoch} step {step} loss {losses / seen:.4f} acc {right / seen:.3f}", flush=True)
            if step == args.steps:
                return
        accuracy = evaluate(model, val_loader)
        print(f"epoch {epoch} done: loss {losses / seen:.4f} val acc {accuracy:.3f} {time.time() - start:.1f} s", flush=True)
        log.writerow([epoch, losses / seen, right / seen, accuracy, time.time() - start])
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.out / "last.pt")


if __name__ == "__main__":
    main()
