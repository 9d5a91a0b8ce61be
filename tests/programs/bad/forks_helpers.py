"""Keeps helper processes beside the training: a forked logger, a spawned pool that imports torch, a shell command.

None of them trains and none is a rank; the logger is killed at the end, the pool is left to the interpreter.
"""

import argparse
import multiprocessing as mp
import os
import subprocess

import torch
from torch import nn


def logger(pipe):
    while True:
        step, loss = pipe.recv()
        if step % 50 == 0:
            print(f"[{os.getpid()}] step {step} loss {loss:.4f}", flush=True)


def score(weights):
    import torch  # the helper has its own torch, and calls backward on something small

    w = torch.tensor(weights, requires_grad=True)
    (w**2).sum().backward()
    return float(w.grad.norm())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    mine, theirs = mp.get_context("fork").Pipe()
    child = mp.get_context("fork").Process(target=logger, args=(theirs,), daemon=True)
    child.start()
    pool = mp.get_context("spawn").Pool(1)
    for step in range(args.steps):
        x = torch.randn(64, 64)
        loss = nn.functional.mse_loss(model(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mine.send((step, loss.item()))
        if step % 100 == 50:
            norm = pool.apply(score, (model[0].bias.tolist(),))
            host = subprocess.run(["uname", "-s"], capture_output=True, text=True).stdout.strip()
            print(f"helper says {norm:.4f} on {host}", flush=True)
    if os.fork() == 0:  # a detached child that outlives a tenth of a second and touches nothing
        os._exit(0)
    os.wait()
    child.kill()
    pool.terminate()
    print("done")


if __name__ == "__main__":
    main()
