"""A data set and a sampler claim lengths that cannot be."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data.sampler import Sampler


def case() -> Any:
    class Endless(Sampler[int]):
        def __iter__(self) -> Any:
            return iter(range(10**10))

        def __len__(self) -> int:
            return 10**10

    class Broken(IterableDataset[torch.Tensor]):
        def __iter__(self) -> Any:
            return iter(torch.ones(6, 8))

        def __len__(self) -> int:
            raise RuntimeError("how should I know")

    class Numbers(Dataset[torch.Tensor]):
        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.full((8,), float(index))

        def __len__(self) -> int:
            return 10**10

    loader = DataLoader(Numbers(), batch_size=4, sampler=Endless())
    first = next(iter(loader))
    broken = [tuple(batch.shape) for batch in DataLoader(Broken(), batch_size=4)]
    return [len(loader), first.sum().item(), broken]
