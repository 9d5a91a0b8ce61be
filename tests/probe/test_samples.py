"""What samples are made of: looked at once, where torch's own function collates them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, default_collate

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


def test_a_batch_of_one_does_not_show_that_shapes_are_equal() -> None:
    assert not are_rows([(torch.ones(2), 1)])


def test_it_is_told_once_and_batches_stay_what_they_were() -> None:
    samples, told = [(torch.full((2,), float(at)), at) for at in range(8)], list[bool]()
    iterator = iter(DataLoader(samples, batch_size=4))  # type: ignore[arg-type]
    look_once(iterator, told.append)
    batches = list(iterator)
    assert told == [True]
    assert torch.equal(batches[1][0], default_collate(samples[4:])[0])


def test_a_collate_function_of_the_programs_own_is_left_alone() -> None:
    told: list[bool] = []
    iterator = iter(DataLoader([(1, 2)] * 4, batch_size=2, collate_fn=list))  # type: ignore[arg-type]
    look_once(iterator, told.append)
    assert list(iterator) == [[(1, 2)] * 2] * 2
    assert told == []
