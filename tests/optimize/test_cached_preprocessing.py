"""cached_preprocessing: the deterministic beginning of a chain runs once, the random rest as before."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset

from hotloop.optimize.catalogue.input.cached_preprocessing.kept_prefix import KeptPrefix
from hotloop.optimize.catalogue.input.vectorized_fetch.whole_batches import WholeBatches
from hotloop.optimize.dataset.dataset_cache import DatasetCache
from hotloop.optimize.dataset.keep import KeptDataset
from hotloop.optimize.dataset.samples import same

from .test_dataset_in_memory import cache, epochs  # noqa: F401 - a fixture

N = 40
calls: Counter[str] = Counter()


class Compose:
    """As torchvision's."""

    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


def scale(row: torch.Tensor) -> torch.Tensor:
    calls["scale"] += 1
    return row / 3


def mirror(row: torch.Tensor) -> torch.Tensor:
    return row.flip(0) if random.random() < 0.5 else row


def jitter(row: torch.Tensor) -> torch.Tensor:
    return row.add_(torch.randn(3))  # in place, as some do


def shift(row: torch.Tensor) -> torch.Tensor:
    return row + np.random.rand()


class Rows(Dataset[Any]):
    def __init__(self, transforms: list[Any]) -> None:
        self.rows = torch.arange(N * 3, dtype=torch.float32).reshape(N, 3)
        self.transform = Compose(transforms)

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        calls["read"] += 1
        return {"row": self.transform(self.rows[index].clone()), "label": index}


class UsesIt(Rows):
    """Computes with what the chain returns."""

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.rows[index]) * 2


class RandomElsewhere(Rows):
    """Draws outside of its chain."""

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.rows[random.randrange(N)]), index


@pytest.mark.parametrize(
    "wrap",
    [lambda rows: rows, lambda rows: Subset(rows, range(30)), lambda rows: ConcatDataset([rows, rows])],
)
@pytest.mark.parametrize("chain", [[scale, mirror, jitter], [mirror, scale], [scale, shift, scale]])
def test_the_random_numbers_are_drawn_as_before(
    chain: list[Any],
    wrap: Callable[[Any], Any],
    cache: Callable[..., DatasetCache],  # noqa: F811
) -> None:
    fresh = epochs(wrap(Rows(chain)))
    activation = cache(keep=KeptPrefix)
    dataset = wrap(Rows(chain))
    assert same(epochs(dataset), fresh)
    assert activation.effect()[0], activation.effect()[1]


def test_only_the_random_rest_runs_again(cache: Callable[..., DatasetCache]) -> None:  # noqa: F811
    cache(keep=KeptPrefix)
    batches = DataLoader(Rows([scale, mirror]), batch_size=10)
    next(iter(batches))
    calls.clear()
    assert len(list(batches)) == 4
    assert calls["read"] == calls["scale"] < N / 4  # those that are checked again


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        (Rows([scale]), "all of its transforms are deterministic"),
        (UsesIt([scale, mirror]), "reading it ahead failed"),
        (RandomElsewhere([scale, mirror]), "outside of its chain|differs between reads"),
        (list(range(9)), "no chain of transforms"),
    ],
)
def test_what_it_leaves_alone(
    dataset: Any,
    reason: str,
    cache: Callable[..., DatasetCache],  # noqa: F811
) -> None:
    fresh = epochs(dataset)
    activation = cache(keep=KeptPrefix)
    assert same(epochs(dataset), fresh)
    on, why = activation.effect()
    assert not on
    assert re.search(reason, why), why


def test_a_chain_that_the_program_changes_is_seen(cache: Callable[..., DatasetCache]) -> None:  # noqa: F811
    activation = cache(keep=KeptPrefix)
    dataset = Rows([scale, mirror])
    batches = DataLoader(dataset, batch_size=N)
    next(iter(batches))
    dataset.transform.transforms.append(jitter)
    next(iter(batches))
    assert "its chain of transforms was changed" in activation.effect()[1]


@pytest.mark.parametrize(
    ("dataset", "keep", "from_start", "reason"),
    [
        (Rows([scale, mirror]), KeptPrefix, True, "processes that ran before"),
        (Rows([scale]), KeptPrefix, False, "all of its transforms are deterministic"),
        (RandomElsewhere([scale, mirror]), KeptPrefix, False, "outside of its chain|differs between reads"),
        (Rows([scale]), KeptDataset, True, "processes that ran before"),
        (Rows([mirror]), KeptDataset, False, "draws random numbers from|differs between reads"),
        (TensorDataset(torch.randn(N, 2)), WholeBatches, True, "processes that ran before"),
        (Rows([scale]), WholeBatches, False, "not the batch of its samples"),
    ],
)
def test_workers_that_run_cannot_be_switched_and_what_they_would_have_from_the_start_is_looked_at(
    dataset: Any,
    keep: Any,
    from_start: bool,
    reason: str,
    cache: Callable[..., DatasetCache],  # noqa: F811
) -> None:
    knob = cache(keep=keep, on=False)
    batches = iter(DataLoader(dataset, batch_size=2, num_workers=1))
    next(batches)
    random.seed(1)
    knob.switch(on=True)
    assert random.random() == random.Random(1).random()
    assert knob.from_start is from_start
    on, why = knob.effect()
    assert not on
    assert re.search(reason, why), why
    knob.switch(on=False)
