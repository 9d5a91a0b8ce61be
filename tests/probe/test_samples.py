"""What samples are made of: looked at once, where torch's own function collates them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from hotloop.probe.hook_points.sample_draws import draws_once
from hotloop.probe.record.samples import are_rows, look_once


@pytest.mark.parametrize(
    ("sample", "rows"),
    [
        ((torch.ones(2), 1), True),
        ([np.ones(2), 0.5, True], True),
        ((np.float32(1.0), torch.ones(())), True),
        (torch.ones(2), False),
        ({"x": torch.ones(2)}, False),
        ((torch.ones(2), "name"), False),
        ((torch.ones(2), (1, 2)), False),
        ((torch.ones(2), np.datetime64("2026-01-01")), False),
    ],
)
def test_rows_are_tuples_of_tensors_arrays_and_numbers(sample: Any, rows: bool) -> None:
    assert are_rows([sample, sample]) == rows


@pytest.mark.parametrize("other", [(torch.ones(3), 1), (torch.ones(2), 0.5), (torch.ones(2).double(), 1)])
def test_samples_that_differ_are_no_rows(other: Any) -> None:
    assert not are_rows([(torch.ones(2), 1), other])


def test_a_batch_of_one_does_not_show_that_shapes_are_equal() -> None:
    assert not are_rows([(torch.ones(2), 1)])


def test_it_is_told_once_and_batches_stay_what_they_were() -> None:
    samples, told = [(torch.full((2,), float(at)), at) for at in range(8)], list[bool]()
    torch.manual_seed(0)
    fresh = list(DataLoader(samples, batch_size=4, shuffle=True))  # type: ignore[arg-type]
    torch.manual_seed(0)
    iterator = iter(DataLoader(samples, batch_size=4, shuffle=True))  # type: ignore[arg-type]
    look_once(iterator, told.append)
    batches = list(iterator)
    assert told == [True]
    assert all(torch.equal(one[0], other[0]) for one, other in zip(batches, fresh, strict=True))


@pytest.mark.parametrize("keywords", [{"shuffle": True, "collate_fn": list}, {}, {"sampler": range(4)}])
def test_a_collate_function_or_order_of_the_programs_own_tells_nothing(keywords: dict[str, Any]) -> None:
    told: list[bool] = []
    iterator = iter(DataLoader([(1, 2)] * 4, batch_size=2, **keywords))  # type: ignore[arg-type]
    look_once(iterator, told.append)
    assert len(list(iterator)) == 2
    assert told == []


class Pictures(Dataset[Any]):
    """Draws a number once, when it is first read, and for each sample if it is told to."""

    def __init__(self, *, flips: bool) -> None:
        self._flips, self._order = flips, None

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        self._order = self._order or random.random()
        return torch.full((2,), float(index)) * (random.choice((-1, 1)) if self._flips else 1)


@pytest.mark.parametrize(("flips", "told"), [(True, [("random",)]), (False, [()])])
@pytest.mark.parametrize("shuffle", [True, False])
def test_what_reading_samples_draws_from_is_told(
    flips: bool, told: list[tuple[str, ...]], shuffle: bool
) -> None:
    """Whatever orders and collates them draws as it likes."""

    def jittered(samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(samples) + torch.rand(1)

    def batches(seen: list[tuple[str, ...]] | None) -> list[torch.Tensor]:
        random.seed(0), torch.manual_seed(0)
        loader = DataLoader(Pictures(flips=flips), batch_size=2, shuffle=shuffle, collate_fn=jittered)
        iterator = iter(loader)
        if seen is not None:
            draws_once(iterator, seen.append)
        return [*iterator]

    seen: list[tuple[str, ...]] = []
    assert all(map(torch.equal, batches(seen), batches(None)))
    assert seen == told


def test_of_samples_that_workers_read_nothing_is_told() -> None:
    seen: list[tuple[str, ...]] = []
    iterator = iter(DataLoader(Pictures(flips=True), batch_size=2, num_workers=1))
    draws_once(iterator, seen.append)
    assert len([*iterator]) == 4
    assert not seen
