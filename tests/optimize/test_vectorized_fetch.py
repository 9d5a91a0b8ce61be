"""vectorized_fetch: whole batches equal those of single samples, and what is no array is left alone."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from hotloop.model.deep import Deep, Loading, LoadingPart
from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.vectorized_fetch.branches import decides
from hotloop.optimize.catalogue.input.vectorized_fetch.row import VectorizedFetch
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.samples import same
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation
from .test_dataset_in_memory import cache, epochs  # noqa: F401 - a fixture

N = 40


class Rows(Dataset[Any]):
    """Rows of an array, and what each kind makes of them."""

    def __init__(self) -> None:
        self.x = np.random.default_rng(0).standard_normal((N, 3)).astype(np.float32)
        self.y = np.arange(N)

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        return self.change(self.x[index]), self.y[index]

    def change(self, row: Any) -> Any:
        return np.log1p(row * row)


class Named(Rows):
    def __getitem__(self, index: int) -> Any:
        return {"x": torch.from_numpy(self.x)[index], "both": (self.y[index], self.x[index, 1])}


class Chain(Rows):
    """Goes through a list of transforms."""

    def change(self, row: Any) -> Any:
        for transform in (torch.from_numpy, torch.abs, lambda value: value - 0.5):
            row = transform(row)
        return row


class Imports(Rows):
    """The import system decides much, and none of it is about a sample."""

    def change(self, row: Any) -> Any:
        from email import message

        return row + len(message.__name__)


class ByTheRow(Rows):
    def change(self, row: Any) -> Any:
        return row / np.abs(row).max()


class Decides(Rows):
    def change(self, row: Any) -> Any:
        return row if row.any() else row + 1


class OneOddRow(Rows):
    """One row among forty is larger, and changed for that: the batch's largest would decide for all."""

    def __init__(self) -> None:
        super().__init__()
        self.x[17] = 1000.0

    def change(self, row: Any) -> Any:
        return np.where(row.max() > 100, 0, row)


class Lists(Rows):
    def __init__(self) -> None:
        super().__init__()
        self.y = self.y.tolist()


class Noise(Rows):
    def change(self, row: Any) -> Any:
        return row + np.random.rand()


class Whole(Rows):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[index] for index in indices]


@pytest.fixture
def fetch(cache: Callable[..., DatasetCache]) -> Callable[[], DatasetCache]:  # noqa: F811
    """Install the activation; torch's classes are as before afterwards."""

    def install() -> DatasetCache:
        activation = VectorizedFetch().activation({})
        assert isinstance(activation, DatasetCache)
        activation.on_torch()
        return activation

    return install


@pytest.mark.parametrize(
    "make",
    [
        Rows,
        Named,
        Chain,
        Imports,
        lambda: TensorDataset(torch.randn(N, 2, 3), torch.arange(N)),
        lambda: Subset(Rows(), list(range(30, 3, -1))),
        lambda: Subset(TensorDataset(torch.randn(N, 2)), range(9)),
    ],
    ids=["arrays", "dictionaries", "chain", "imports", "TensorDataset", "Subset", "Subset of tensors"],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_the_same_bit_by_bit(
    make: Callable[[], Any], workers: int, fetch: Callable[[], DatasetCache]
) -> None:
    dataset = make()
    fresh = epochs(dataset, num_workers=workers)
    activation = fetch()
    assert same(epochs(dataset, num_workers=workers), fresh)
    on, evidence = activation.effect()
    assert on, evidence
    assert re.search(r"equal in \d+ rows compared", evidence)


def test_a_sample_is_not_read_by_itself_any_more(fetch: Callable[[], DatasetCache]) -> None:
    fetch()
    dataset = Rows()
    batches = DataLoader(dataset, batch_size=10)
    next(iter(batches))
    calls: list[Any] = []
    dataset.change = lambda row: calls.append(row.shape) or row  # type: ignore[func-returns-value]
    list(batches)
    assert calls[-4:] == [(10, 3)] * 4


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (ByTheRow, "not the batch of its samples"),
        (Decides, r"change\(\) decides something for each sample"),
        (OneOddRow, "not the batch of its samples"),
        (Lists, "cannot be indexed with several rows at once: TypeError"),
        (Noise, "draws random numbers from numpy|differs between reads"),
        (Whole, "reads whole batches already"),
        (lambda: [torch.ones(2)] * N, "cannot be indexed with several rows"),
    ],
)
def test_what_it_leaves_alone(
    make: Callable[[], Any], reason: str, fetch: Callable[[], DatasetCache]
) -> None:
    dataset = make()
    fresh = epochs(dataset)
    activation = fetch()
    assert same(epochs(dataset), fresh)
    on, why = activation.effect()
    assert not on
    assert re.search(reason, why), why


def test_what_a_collection_of_garbage_calls_decides_nothing() -> None:
    def watched(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            info.clear()

    gc.callbacks.append(watched)
    usual = gc.get_threshold()
    gc.set_threshold(1)
    try:
        assert decides(lambda: [[] for _ in range(10_000)]) is None
        assert gc.isenabled()
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(watched)


def test_a_collate_function_of_its_own_is_left_alone(fetch: Callable[[], DatasetCache]) -> None:
    activation = fetch()
    next(iter(DataLoader(Rows(), batch_size=4, collate_fn=list)))
    assert "collated by a function of the program's own" in activation.effect()[1]


def test_what_stops_being_equal_is_seen(fetch: Callable[[], DatasetCache]) -> None:
    activation = fetch()
    dataset = Rows()
    batches = DataLoader(dataset, batch_size=N)
    next(iter(batches))
    dataset.__class__ = ByTheRow
    kept = next(iter(activation._kept.values()))
    kept._pace._due_s = 0.0  # a hundred times as long has passed as comparing took
    values, _ = next(iter(batches))
    assert "not the batch of its samples" in activation.effect()[1]
    assert torch.equal(values.abs().amax(dim=1), torch.ones(N))


def test_where_it_is_proposed(tmp_path: Path) -> None:
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.5})
    assert [candidate.params for candidate in VectorizedFetch().candidates(seen)] == [{}]
    part = LoadingPart(
        kind="decode",
        name="load",
        path=None,
        line=None,
        count_per_sample=1,
        time_per_sample_s=1e-3,
        share=0.8,
    )
    loading = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=1e-3,
        parts=(part,), used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None,
    )  # fmt: skip
    decodes = msgspec.structs.replace(seen, deep=Deep(loading=loading))
    with pytest.raises(DoesNotApply, match="decoding take 80% of a sample's time"):
        VectorizedFetch().candidates(decodes)
    with pytest.raises(DoesNotApply, match="IterableDataset"):
        VectorizedFetch().candidates(observation(loaders=(loader(iterable=True),)))
    with pytest.raises(DoesNotApply, match="whole batches already"):
        VectorizedFetch().candidates(observation(loaders=(loader(batch_size=None),)))
