"""DDP that starts its own ranks with `mp.spawn` and sets MASTER_PORT itself, always to the same number."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


class ToyModel(nn.Module):
    def __init__(self):
        super(ToyModel, self).__init__()
        self.net1 = nn.Linear(256, 512)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(512, 16)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def demo_basic(rank, world_size, steps):
    print(f"Running basic DDP example on rank {rank}.", flush=True)
    setup(rank, world_size)
    torch.manual_seed(rank)
    ddp_model = DDP(ToyModel())
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        x = torch.randn(64, 256)
        loss = loss_fn(ddp_model(x), x[:, :16] * 2)
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()
    print(f"Finished running basic DDP example on rank {rank}.", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--world-size", type=int, default=2)
    args = parser.parse_args()
    mp.spawn(demo_basic, args=(args.world_size, args.steps), nprocs=args.world_size, join=True)
