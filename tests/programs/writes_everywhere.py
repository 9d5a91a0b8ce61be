"""Writes into its folder in every way there is while it trains, and changes and deletes files that were there.

Checkpoints, CSV, JSON, a memory map, SQLite, a child process, a TensorBoard-like event file, an append to a file of its
own, an atomic replace. Run it in a copy: what it leaves behind is the test.
"""

import argparse
import csv
import json
import mmap
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--out", type=Path, default=Path("runs/writes"))
args = parser.parse_args()
args.out.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
history = args.out / "history.txt"  # grows from run to run
database = sqlite3.connect(args.out / "runs.db")
database.execute("create table if not exists losses (step integer, loss real)")
losses = np.memmap(args.out / "losses.npy", dtype=np.float32, mode="w+", shape=(args.steps,))
with open(args.out / "state.bin", "wb") as f:
    f.truncate(4096)
state = open(args.out / "state.bin", "r+b")
mapped = mmap.mmap(state.fileno(), 4096)
log = csv.writer(open(args.out / "log.csv", "w", newline=""))
for step in range(args.steps):
    x = torch.randn(64, 32)
    loss = nn.functional.mse_loss(model(x), x[:, :4].sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses[step] = loss.item()
    mapped[step % 4096] = step % 256
    log.writerow([step, loss.item()])
    database.execute("insert into losses values (?, ?)", (step, loss.item()))
    if step % 5 == 0:
        database.commit()
        with history.open("a") as f:
            f.write(f"{os.getpid()} {step} {loss.item()}\n")
        temporary = args.out / "checkpoint.tmp"
        torch.save({"model": model.state_dict(), "step": step}, temporary)
        os.replace(temporary, args.out / "checkpoint.pt")
        (args.out / "metrics.json").write_text(json.dumps({"step": step, "loss": loss.item()}))
        with (args.out / f"events.out.{step}").open("wb") as f:
            f.write(os.urandom(64))
        for old in sorted(args.out.glob("events.out.*"))[:-2]:
            old.unlink()
        child = f"open({str(args.out / 'child.txt')!r}, 'w').write('step {step}')"
        subprocess.run([sys.executable, "-S", "-c", child], check=True)
        print(f"step {step} loss {loss.item():.4f}", flush=True)
losses.flush()
mapped.flush()
