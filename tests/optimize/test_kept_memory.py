"""What is kept never takes more than its share of the memory, and workers share it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotloop.optimize.catalogue.input.cached_preprocessing.kept_prefix import KeptPrefix
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.keep import KeptDataset
from hotloop.optimize.dataset.refusal import CannotKeep

from .test_dataset_in_memory import cache  # noqa: F401 - a fixture

NUM_ROWS, ROW = 512, 256 * 1024
"""Samples, and numbers a sample: 1 MiB."""


class Chain:
    def __init__(self) -> None:
        self.transforms = [lambda row: row * 2, lambda row: row.flip(0) if random.random() < 0.5 else row]

    def __call__(self, row: Any) -> Any:
        for transform in self.transforms:
            row = transform(row)
        return row


class FewAreHuge(Dataset[Any]):
    """One sample in a hundred and one is a thousand times as large; none of those is looked at ahead."""

    def __init__(self, chain: Any = None) -> None:
        self.transform = chain

    def __len__(self) -> int:
        return 2048

    def __getitem__(self, index: int) -> Any:
        row = torch.zeros(1000 * 64 if index % 101 == 7 else 64)
        return self.transform(row) if self.transform is not None else row


@pytest.mark.parametrize(("keep", "chain"), [(KeptDataset, None), (KeptPrefix, Chain())])
def test_what_turns_out_larger_than_it_looked_is_let_go(
    keep: Any, chain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = 3_000_000
    taken: list[int] = []
    dataset = FewAreHuge(chain)
    read = type(dataset).__getitem__

    def counted(self: Any, index: int) -> Any:
        sample = read(self, index)
        taken.append(getattr(sample, "nbytes", 0))
        return sample

    monkeypatch.setattr("hotloop.optimize.dataset.budget.allowed_bytes", lambda share: allowed)
    monkeypatch.setattr("hotloop.optimize.dataset.keep.CHECKED_BATCH", 2)
    monkeypatch.setattr(FewAreHuge, "__getitem__", counted)
    with pytest.raises(CannotKeep, match=r"take more than 0\.00\d+ GiB|take about"):
        keep(DataLoader(dataset, collate_fn=list), 0.25)
    assert sum(taken) < 1.5 * allowed, "it stopped where the share was reached"


class Rows(Dataset[Any]):
    """512 samples of 1 MiB each."""

    def __len__(self) -> int:
        return NUM_ROWS

    def __getitem__(self, index: int) -> Any:
        return torch.full((ROW,), float(index))


def resident_bytes(*pids: int) -> int:
    """Return the memory of some processes together; what they share counts once."""
    return sum(int(psutil.Process(pid).memory_full_info().pss) for pid in pids)


@pytest.mark.parametrize("collate", [None, torch.stack], ids=["columns", "samples"])
@pytest.mark.slow
def test_workers_share_what_is_kept(collate: Any, cache: Callable[..., DatasetCache]) -> None:  # noqa: F811
    """A machine that reclaims memory may give a shared page back to one process alone, so both count together."""
    before = resident_bytes(os.getpid())
    activation = cache()
    batches = DataLoader(
        Rows(),
        batch_size=4,
        num_workers=1,
        persistent_workers=True,
        prefetch_factor=1,
        collate_fn=collate,
    )
    for _ in range(2):
        for batch in batches:
            assert batch.shape == (4, ROW)
    workers: Any = batches._iterator._workers  # type: ignore[union-attr]
    kept = resident_bytes(os.getpid(), *(worker.pid for worker in workers)) - before
    assert activation.effect()[0]
    assert kept < 1.6 * NUM_ROWS * (1 << 20), f"both hold {kept} bytes, of {NUM_ROWS} MiB that are kept"
