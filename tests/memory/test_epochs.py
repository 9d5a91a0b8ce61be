"""What counts as an epoch: a loader that has given everything for training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset, dataloader

from hotloop.probe.virtual_gpu.world import World


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    iterator: Any = dataloader._BaseDataLoaderIter
    monkeypatch.setattr(iterator, "__next__", iterator.__next__)
    made = World(cast("Any", SimpleNamespace(records=[])), lambda tensor: tensor)
    made.adopt_batches()
    return made


def test_a_trainer_that_counts_its_batches_ends_an_epoch_when_the_next_begins(world: World) -> None:
    train, held_out = (DataLoader(TensorDataset(torch.ones(num)), batch_size=2) for num in (6, 4))
    for epochs_by_now in (0, 1):
        batches = iter(train)
        for _ in range(len(train)):
            next(batches)
            assert world.num_epochs == epochs_by_now
        with torch.no_grad():
            list(held_out)
    assert world.num_epochs == 1


def test_a_loop_over_a_loader_ends_an_epoch_once(world: World) -> None:
    loader = DataLoader(TensorDataset(torch.ones(6)), batch_size=2)
    list(loader)
    assert world.num_epochs == 1
    next(iter(loader))
    assert world.num_epochs == 1
