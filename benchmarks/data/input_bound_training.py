"""A small training loop over one of the input-bound data sets: `python input_bound_training.py NAME FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from benchmarks.data.input_bound_programs import PROGRAMS


def main(name: str, folder: Path) -> None:
    torch.manual_seed(0)
    dataset = PROGRAMS[name](folder)
    loader: Any = DataLoader(dataset, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(dataset[0][0].numel(), 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    while True:  # whoever measures ends it
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
