"""sequential_shards: every sample once an epoch, neighbours after one another."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader

from hotloop.model.deep import Deep, Loading, LoadingPart
from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.sequential_shards.row import SequentialShards
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation

N = 70


def test_shards_come_in_random_order_and_are_read_in_sequence() -> None:
    activation = SequentialShards().activation({"shard_size": 16})
    given = {"dataset": list(range(N)), "batch_size": 8, "shuffle": True}
    torch.manual_seed(1)
    batches = DataLoader(**activation.on_loader(dict(given)))
    first, second = ([int(index) for batch in batches for index in batch] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(N))
    assert first != second
    assert sum(after - before != 1 for before, after in pairwise(first)) <= N // 16
    assert activation.effect() == (True, "2 epoch(s) were read in shards of 16 neighbouring samples")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shuffle": False}, "no shuffled loader"),
        ({"shuffle": False, "sampler": [1, 2]}, "no shuffled loader"),
        ({"dataset": list(range(20))}, "its 20 samples are fewer than two shards of 16"),
        ({"dataset": iter([1])}, "no shuffled loader"),
    ],
)
def test_loaders_that_keep_their_order(changes: dict[str, Any], reason: str) -> None:
    activation = SequentialShards().activation({"shard_size": 16})
    given = {"dataset": list(range(N)), "batch_size": 8, "shuffle": True, **changes}
    assert activation.on_loader(dict(given)) == given
    on, why = activation.effect()
    assert not on
    assert reason in why


def test_it_is_offered_where_reading_takes_time() -> None:
    part = LoadingPart(
        kind="read", name="read", path=None, line=None, count_per_sample=1, time_per_sample_s=1e-3, share=0.5
    )
    loading = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=2e-3, parts=(part,),
        used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None,
    )  # fmt: skip
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.5})
    (candidate,) = SequentialShards().candidates(msgspec.structs.replace(seen, deep=Deep(loading=loading)))
    assert candidate.params == {"shard_size": 512}
    nothing = Deep(loading=msgspec.structs.replace(loading, parts=()))
    for each, reason in (
        (seen, "was not looked at"),
        (msgspec.structs.replace(seen, deep=nothing), "take 0.0% of a sample's time"),
        (observation(loaders=(loader(iterable=True),)), "an order of its own"),
    ):
        with pytest.raises(DoesNotApply, match=reason):
            SequentialShards().candidates(each)
