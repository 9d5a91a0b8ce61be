"""Frames above the dataset: anomaly mode and profilers get slower with each; the loader's hook adds one."""

from __future__ import annotations

import inspect
from typing import Any

from torch.utils.data import DataLoader, Dataset


def case() -> Any:

    class Deep(Dataset[int]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> int:
            names = [frame.function for frame in inspect.stack()]
            return sum(1 for name in names if name == "__next__") <= 2

    return bool(next(iter(DataLoader(Deep())))[0])
