"""Data sets with hidden randomness or state, each of its own kind, and deterministic ones."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

N = 40


class Base(Dataset[Any]):
    """Reads row i of a table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = torch.arange(N * 3, dtype=torch.float32).reshape(N, 3)

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        return self.change(self.rows[index]), index % 5

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row * 2


class Numpy(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row + float(np.random.rand() < 0.5)


class Python(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row.flip(0) if random.random() < 0.5 else row


class Torch(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row + torch.randn(3) * 0.01


class OwnNumpyGenerator(Base):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.generator = np.random.default_rng(3)

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row * (1 if self.generator.random() > 0.01 else 2)


class OwnTorchGenerator(Base):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.generator = torch.Generator()

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row * (1 if torch.rand((), generator=self.generator) > 0.01 else 2)


class FreshGenerator(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row * random.Random().random()


class Clock(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row + int(time.time()) // 3600


class Counter(Base):
    count = 0

    def change(self, row: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return row * (2 if self.count > 1000 else 1)


class NestedCounter(Base):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.stats = {"seen": {"rows": 0}}

    def change(self, row: torch.Tensor) -> torch.Tensor:
        self.stats["seen"]["rows"] += 1
        return row


class WritesAFile(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        with (self.folder / "log").open("a") as file:
            file.write("x")
        return row


class Entropy(Base):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        import os

        return row + (os.urandom(1)[0] == 0)


RANDOM: dict[str, Callable[[Path], Base]] = {
    cls.__name__: cls
    for cls in (
        Numpy, Python, Torch, OwnNumpyGenerator, OwnTorchGenerator, FreshGenerator, Clock, Counter, NestedCounter,
        WritesAFile, Entropy,
    )
}  # fmt: skip


class OpensLazily(Base):
    """Opens its file on first use, as data sets over HDF5 do."""

    table: Any = None

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        np.save(folder / "table.npy", np.arange(N * 3, dtype=np.float32).reshape(N, 3))

    def change(self, row: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = np.load(self.folder / "table.npy", mmap_mode="r")
        return torch.from_numpy(np.array(self.table[int(row[0]) // 3]))


class SeededByIndex(Base):
    """Random to look at, and the same for an index each time."""

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row * random.Random(int(row[0])).random()


class ReadsFiles(Base):
    """A small file per sample."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for i in range(N):
            (folder / f"{i}.txt").write_text(str(i))

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row * float((self.folder / f"{int(row[0]) // 3}.txt").read_text())


class Dictionaries(Base):
    def __getitem__(self, index: int) -> Any:
        return {"x": self.rows[index].numpy(), "y": (index, float(index)), "name": f"row {index}"}


class UnequalLengths(Base):
    def __getitem__(self, index: int) -> Any:
        return torch.ones(1 + index % 4), index


DETERMINISTIC: dict[str, Callable[[Path], Base]] = {
    cls.__name__: cls for cls in (Base, OpensLazily, SeededByIndex, ReadsFiles, Dictionaries)
}
