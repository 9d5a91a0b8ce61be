"""What the program keeps is told from batches and from what an operation needs for a moment."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import torch
from torch import nn

from hotloop.probe.instruments.dispatch_mode import operator_mode
from hotloop.probe.instruments.object_sizes import address
from hotloop.probe.memory_failure.account import held_now, walked_tensors
from hotloop.probe.memory_failure.holders import holders, kept_addresses, named_values
from hotloop.probe.memory_failure.live_storages import LiveStorages

SIZE = (1000, 1001)


def _followed(storages: LiveStorages) -> Any:
    def run(func: Any, args: Any, kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        storages.saw(out, str(func), args)
        return out

    return operator_mode(run)


def _by_class(storages: LiveStorages, kept: Collection[int]) -> dict[str, int]:
    rows = [row for row in walked_tensors() if row["address"] in storages.live]
    found: dict[str, int] = held_now("cpu", storages, rows, kept)["by_class"]
    return found


def test_a_cache_made_without_gradients_is_no_temporary() -> None:
    storages, cache = LiveStorages(), {}
    with _followed(storages), torch.no_grad():
        for at in range(3):
            cache[at] = torch.ones(SIZE) * at
    named = named_values(sys._getframe())
    kept = kept_addresses(named, ())
    assert {address(one) for one in cache.values()} <= kept
    size = sum(one.nbytes for one in cache.values())
    assert _by_class(storages, kept)["other"] == size
    assert _by_class(storages, ())["temporaries"] == size, "where no name is known"


def test_a_checkpoint_beside_the_model_is_no_input_and_a_batch_is() -> None:
    storages = LiveStorages()
    with _followed(storages):
        loaded = {"model": {"weight": torch.ones(SIZE)}}
        batch = {"image": torch.ones(SIZE), "mask": torch.ones(SIZE)}
    kept = kept_addresses(named_values(sys._getframe()), {address(batch["image"])})
    assert address(loaded["model"]["weight"]) in kept
    by_class = _by_class(storages, kept)
    assert by_class["other"] == batch["mask"].nbytes
    assert by_class["inputs"] == 2 * batch["mask"].nbytes


def test_what_outlives_its_step_is_no_temporary() -> None:
    storages, averages = LiveStorages(), torch.zeros(())
    model = nn.Linear(4, 4)
    with _followed(storages):
        with torch.no_grad():
            averages = torch.ones(SIZE) * 2
        for _ in range(6):
            model(torch.ones(2, 4)).sum().backward()
    assert _by_class(storages, ())["other"] >= averages.nbytes


def test_of_a_dictionary_and_its_list_one_is_told() -> None:
    logs = {"out": [torch.ones(SIZE) for _ in range(4)], "step": [1]}
    even = {"a": [torch.ones(SIZE)], "b": [torch.ones(SIZE)]}

    class Agent:
        def __init__(self) -> None:
            self.memory = [torch.ones(SIZE) for _ in range(7)]

    agents = {"first": Agent()}
    model = nn.Linear(*SIZE)
    best = model.state_dict()
    rows = holders(named_values(sys._getframe()), {address(one) for one in model.parameters()})
    names = [row["name"] for row in rows]
    assert names[:2] == ["self.memory", "logs['out']"]
    assert not {"logs", "agents"} & set(names)
    assert "even" in names
    assert not [name for name in names if name.startswith("even[")]
    held = next((row["held_bytes"] for row in rows if row["name"] == "best"), 0)
    assert held < 10_000, "the model keeps it anyway"
    assert len(logs) == len(even) == len(best) == 1 + len(agents)
