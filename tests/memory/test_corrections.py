"""Tensors that change places."""

from __future__ import annotations

from typing import Any

import torch

from hotloop.probe.virtual_gpu.corrections import _swap


class Shard(torch.Tensor):
    __slots__ = ["local"]


def shard(size: int) -> Any:
    made: Any = torch.ones(size).as_subclass(Shard)
    made.local, made.said = torch.zeros(size), str(size)
    return made


def test_what_a_tensor_holds_in_slots_changes_places_with_it() -> None:
    one, other = shard(1), shard(2)
    _swap(one, other)
    assert [(each.shape[0], each.local.shape[0], each.said) for each in (one, other)] == [
        (2, 2, "2"),
        (1, 1, "1"),
    ]
