"""dataset_in_memory: batches are the same bit by bit, and a data set with hidden randomness is left alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter

from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.dataset_in_memory.row import DatasetInMemory
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.keep import KeptDataset
from hotloop.optimize.dataset.refusal import CannotKeep
from hotloop.optimize.dataset.samples import copy_of, same
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation
from .random_datasets import DETERMINISTIC, RANDOM, Base, N, ReadsFiles, UnequalLengths


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., DatasetCache]]:
    """Install the activation; torch's classes are as before afterwards."""
    for cls, name in (
        (DataLoader, "_get_iterator"),
        (_BaseDataLoaderIter, "_reset"),
        (_MapDatasetFetcher, "fetch"),
    ):
        monkeypatch.setattr(cls, name, getattr(cls, name))

    def install(in_process: bool = False, keep: Any = KeptDataset, *, on: bool = True) -> DatasetCache:
        activation = DatasetCache(0.25, in_process, on=on, keep=keep)
        activation.on_torch()
        return activation

    return install


def epochs(dataset: Any, num: int = 2, **keywords: Any) -> list[Any]:
    """Return all batches of some epochs under fixed seeds, with the generators' next numbers."""
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    batches = DataLoader(dataset, batch_size=7, shuffle=True, **keywords)
    seen = [copy_of(batch) for _ in range(num) for batch in batches]
    return [*seen, random.random(), float(np.random.rand()), torch.rand(2)]


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_same_bit_by_bit(
    name: str, workers: int, tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    dataset = DETERMINISTIC[name](tmp_path)
    fresh = epochs(dataset, num_workers=workers)
    activation = cache()
    assert same(epochs(dataset, num_workers=workers), fresh)
    assert activation.effect()[0], activation.effect()[1]


def test_workers_are_left_out_where_batches_are_made_in_process(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    dataset = Base(tmp_path)
    fresh = epochs(dataset, num_workers=2, persistent_workers=True, prefetch_factor=3)
    activation = cache(in_process=True)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    batches = DataLoader(
        dataset, batch_size=7, shuffle=True, num_workers=2, persistent_workers=True, prefetch_factor=3
    )
    seen = [copy_of(batch) for _ in range(2) for batch in batches]
    assert same(seen, fresh[: len(seen)])
    assert activation.effect()[0]
    assert (batches.num_workers, batches.prefetch_factor, batches.persistent_workers) == (2, 3, True)
    assert not hasattr(batches._iterator, "_workers")


@pytest.mark.parametrize("name", RANDOM)
def test_hidden_randomness_is_seen_and_left_alone(
    name: str, tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    dataset = RANDOM[name](tmp_path)
    activation = cache()
    first = [len(batch[0]) for batch in DataLoader(dataset, batch_size=7)]
    on, why = activation.effect()
    assert not on
    assert why.startswith(f"the data set {name} is not kept: ")
    assert sum(first) == N


def test_the_programs_random_numbers_are_not_touched(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    dataset = RANDOM["Torch"](tmp_path)
    fresh = epochs(dataset)
    cache()
    assert same(epochs(dataset), fresh)


def test_samples_of_other_shapes_go_through_the_programs_own_collate(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    def padded(samples: list[Any]) -> Any:
        samples[0][0].mul_(3)  # it may change what it is given
        return torch.nn.utils.rnn.pad_sequence([row for row, _ in samples]), [label for _, label in samples]

    dataset = UnequalLengths(tmp_path)
    fresh = epochs(dataset, collate_fn=padded)
    activation = cache()
    assert same(epochs(dataset, collate_fn=padded), fresh)
    assert activation.effect()[0]


def test_workers_that_ran_before_it_was_switched_on_are_said(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    activation = cache()
    activation.switch(False)
    loader = DataLoader(Base(tmp_path), batch_size=7, num_workers=1, persistent_workers=True)
    assert len(list(loader)) == 6
    activation.switch(True)
    assert "loader workers make the batches" in activation.effect()[1]


def test_an_evaluation_is_not_kept(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    activation = cache()
    with torch.no_grad():
        assert len(list(DataLoader(Base(tmp_path), batch_size=7))) == 6
    assert activation.effect() == (False, "no training loader with an indexable data set was seen")


def test_an_evaluation_of_kept_data_reads_them(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    """The data set may be in another mode, and nothing has checked that it is not."""
    dataset: Any = Base(tmp_path)
    dataset.change = lambda row: row + dataset.mode
    dataset.mode = 0
    activation = cache()
    batches = DataLoader(dataset, batch_size=N)
    plain = next(iter(batches))[0]
    dataset.mode = 1
    with torch.no_grad():
        assert same(next(iter(batches))[0], plain + 1)
    dataset.mode = 0
    assert same(next(iter(batches))[0], plain)
    assert activation.effect()[0]


def test_data_sets_that_are_made_for_an_epoch_are_not_piled_up(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    activation = cache()
    for first in range(4):
        assert list(DataLoader(Subset(Base(tmp_path), range(first, N)), batch_size=7))
    assert len(activation._kept) == 0
    assert "makes a loader over other data for each epoch" in activation.effect()[1]


def test_a_loader_that_is_made_anew_over_the_same_data_finds_them(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    activation, dataset = cache(), Base(tmp_path)
    for _ in range(3):
        assert len(list(DataLoader(dataset, batch_size=7))) == 6
    assert activation.effect()[0]
    assert sum(kept.num_batches for kept in activation._kept.values()) == 3 * 6


def test_folds_let_go_of_the_one_before(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    activation = cache()
    for first in range(3):
        batches = DataLoader(Subset(Base(tmp_path), range(first, N)), batch_size=7)
        assert [len(list(batches)) for _ in range(2)] == [6, 6]
        del batches
    assert len(activation._kept) == 1
    assert activation.effect()[0]


def test_indices_may_be_numbers_of_numpy(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    dataset = Base(tmp_path)
    batches = DataLoader(dataset, batch_size=7, sampler=SubsetRandomSampler(np.arange(30)))
    activation = cache()
    assert len(list(batches)) == 5
    assert sum(kept.num_batches for kept in activation._kept.values()) == 5


def test_what_no_batch_was_made_of_has_no_effect(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    activation = cache()
    list(DataLoader(Base(tmp_path), batch_size=7, sampler=torch.arange(30)))  # indices that are tensors
    assert not activation.effect()[0]


def test_what_changes_between_epochs_is_seen(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    dataset = ReadsFiles(tmp_path)
    activation = cache()
    batches = DataLoader(dataset, batch_size=N)
    next(iter(batches))
    assert activation.effect()[0]
    (tmp_path / "7.txt").write_text("70000")
    values, _ = next(iter(batches))
    assert values[7].max() > 70000
    assert "7.txt has changed since it was read" in activation.effect()[1]


def test_an_attribute_that_the_program_sets_is_seen(
    tmp_path: Path, cache: Callable[..., DatasetCache]
) -> None:
    dataset: Any = Base(tmp_path)
    activation = cache()
    batches = DataLoader(dataset, batch_size=N)
    next(iter(batches))
    dataset.epoch = 1
    next(iter(batches))
    assert "self.epoch of the data set changes" in activation.effect()[1]


def test_what_does_not_fit_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.optimize.dataset.budget.allowed_bytes", lambda share: 100)
    with pytest.raises(CannotKeep, match=r"40 samples take about .* are allowed \(25% of the free memory\)"):
        KeptDataset(DataLoader(Base(tmp_path)), 0.25)


def test_what_would_take_minutes_to_read_is_not_kept(tmp_path: Path) -> None:
    times = iter(range(0, 100_000, 1000))
    with pytest.raises(CannotKeep, match=r"reading all 40 samples would take about \d+ minutes"):
        KeptDataset(DataLoader(Base(tmp_path)), 0.25, clock=lambda: float(next(times)))


def test_switched_off_the_data_set_is_read_again(tmp_path: Path, cache: Callable[..., DatasetCache]) -> None:
    dataset: Any = Base(tmp_path)
    activation = cache()
    batches = DataLoader(dataset, batch_size=N)
    next(iter(batches))
    reads: list[int] = []
    dataset.change = lambda row: reads.append(1) or row  # type: ignore[func-returns-value]
    activation.switch(False)
    next(iter(batches))
    assert len(reads) == N


@pytest.mark.parametrize(
    ("loaders", "changes", "reason"),
    [
        ((loader(iterable=True),), {}, "IterableDataset"),
        ((loader(num_iterators=1),), {"total_steps": 100}, "no second epoch"),
        ((loader(dataset_len=None),), {}, "no length"),
    ],
)
def test_it_does_not_apply(loaders: Any, changes: dict[str, Any], reason: str) -> None:
    seen = msgspec.structs.replace(observation(loaders=loaders, shares={Phase.DATA: 0.5}), **changes)
    with pytest.raises(DoesNotApply, match=reason):
        DatasetInMemory().candidates(seen)


def test_a_loader_with_workers_gets_it_in_the_training_process_too() -> None:
    found = DatasetInMemory().candidates(
        observation(loaders=(loader(num_workers=2),), shares={Phase.DATA: 0.5})
    )
    assert [candidate.params for candidate in found] == [{"in_process": True}, {"in_process": False}]
    with pytest.raises(ValueError, match="max_share is 2"):
        DatasetInMemory().validate({"max_share": 2})
