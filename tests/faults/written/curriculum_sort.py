"""Teach a small transformer to sort digits, raising the sequence length as it improves."""
import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

DIGITS = 10


class SortProblems(Dataset):
    """Endless-looking set: problem i is generated from its index."""

    def __init__(self, length, size, offset):
        self.length, self.size, self.offset = length, size, offset

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(self.offset + i)
        digits = torch.randint(0, DIGITS, (self.length,), generator=gen)
        return digits, digits.sort().values


class Sorter(nn.Module):
    def __init__(self, dim=96, depth=3, longest=32):
        super().__init__()
        self.digit = nn.Embedding(DIGITS, dim)
        self.place = nn.Parameter(torch.randn(longest, dim) * 0.02)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 4, 3 * dim, dropout=0.0, batch_first=True) for _ in range(depth)
        )
        self.out = nn.Linear(dim, DIGITS)

    def forward(self, digits):
        h = self.digit(digits) + self.place[: digits.shape[1]]
        for block in self.blocks:
            h = block(h)
        return self.out(h)


class Curriculum:
    def __init__(self, start, longest, batch_size, workers):
        self.level, self.longest = start, longest
        self.batch_size, self.workers = batch_size, workers
        self.stage = 0

    def promote(self, loss):
        if loss < 0.35 and self.level < self.longest:
            self.level += 1

    def next_stage(self):
        self.stage += 1
        problems = SortProblems(self.level, size=4096, offset=self.stage * 4096)
        loader = DataLoader(
            problems, batch_size=self.batch_size, shuffle=True, num_workers=self.workers, drop_last=True
        )
        return iter(loader)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60_000)
    ap.add_argument("--stage-steps", type=int, default=6)
    ap.add_argument("--batch-size", type=int, default=48)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--start", type=int, default=16)
    ap.add_argument("--longest", type=int, default=32)
    args = ap.parse_args()

    torch.manual_seed(12)
    model = Sorter(longest=args.longest)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98))
    curriculum = Curriculum(args.start, args.longest, args.batch_size, args.workers)
    step = 0
    while step < args.steps:
        batches = curriculum.next_stage()
        for digits, ordered in itertools.islice(batches, args.stage_steps):
            logits = model(digits)
            loss = F.cross_entropy(logits.flatten(0, 1), ordered.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        curriculum.promote(loss.item())
        if curriculum.stage % 10 == 0:
            print(f"step {step} length {curriculum.level} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
