"""DistributedDataParallel under torchrun with gloo: DistributedSampler, accumulation under `no_sync`, rank 0 saves.

    torchrun --nproc-per-node 2 ddp_torchrun.py --steps 40
"""

import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup():
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), dist.get_world_size()


def make_data():
    g = torch.Generator().manual_seed(0)
    prototypes = torch.randn(10, 3, 32, 32, generator=g)
    labels = torch.randint(0, 10, (2048,), generator=g)
    return TensorDataset(prototypes[labels] + torch.randn(2048, 3, 32, 32, generator=g), labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=40, help="optimizer steps")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--out", default="runs/ddp")
    args = parser.parse_args()
    rank, world = setup()
    torch.manual_seed(rank)
    dataset = make_data()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 64, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    ddp_model = DDP(model)
    optimizer = torch.optim.AdamW(ddp_model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            last = (i + 1) % args.accumulate == 0
            with contextlib.nullcontext() if last else ddp_model.no_sync():
                loss = loss_fn(ddp_model(x), y) / args.accumulate
                loss.backward()
            if not last:
                continue
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 5 == 0:
                total = loss.detach() * args.accumulate
                dist.all_reduce(total)
                if rank == 0:
                    print(f"epoch {epoch} step {step} loss {total.item() / world:.4f}", flush=True)
            if step == args.steps:
                break
        if rank == 0:
            os.makedirs(args.out, exist_ok=True)
            torch.save(ddp_model.module.state_dict(), f"{args.out}/model.pt")
        dist.barrier()
        if step == args.steps:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
