"""length_bucketing: every sample once an epoch, with less padding, and loaders that must keep their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

from hotloop.model.deep import Deep, Loading
from hotloop.model.observation import Phase
from hotloop.model.optimization import Numerics
from hotloop.optimize.catalogue.input.length_bucketing.row import CODE, LengthBucketing
from hotloop.optimize.optimization import DoesNotApply
from hotloop.probe.instruments.sample_length import length_of

from .harness import loader, observation

N = 203


class Sentences(Dataset[Any]):
    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.lengths = torch.randint(3, 60, (N,), generator=generator).tolist()

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        return torch.full((self.lengths[index],), index), index % 2


class Noise(Sentences):
    def __getitem__(self, index: int) -> Any:
        return torch.rand(self.lengths[index]), 1


class Equal(Sentences):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(5), 1


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter([torch.ones(3)])


def padded(samples: list[Any]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence([row for row, _ in samples], batch_first=True, padding_value=-1)


def made(dataset: Any, **keywords: Any) -> tuple[DataLoader[Any], Any]:
    """Return a loader as the activation lets it be made."""
    activation = LengthBucketing().activation({})
    given = {"dataset": dataset, "batch_size": 8, "collate_fn": padded, **keywords}
    return DataLoader(**activation.on_loader(dict(given))), activation


@pytest.mark.parametrize("drop_last", [False, True])
def test_every_sample_comes_once_with_less_padding(drop_last: bool) -> None:
    plain = sum((batch == -1).sum() for batch in DataLoader(Sentences(), 8, shuffle=True, collate_fn=padded))
    batches, activation = made(Sentences(), shuffle=True, drop_last=drop_last)
    assert (batches.batch_size, len(batches)) == (8, 25 if drop_last else 26)
    epochs = [[batch[:, 0].tolist() for batch in batches] for _ in range(2)]
    for epoch in epochs:
        seen = sorted(index for batch in epoch for index in batch)
        assert len(set(seen)) == len(seen) == (200 if drop_last else N)
        assert all(len(batch) == 8 for batch in epoch[:25])
    assert epochs[0] != epochs[1], "it is still shuffled"
    assert sum((batch == -1).sum() for batch in batches) < plain / 3
    on, evidence = activation.effect()
    assert on
    assert "in random order" in evidence


def test_the_same_seed_gives_the_same_order() -> None:
    def order() -> list[Any]:
        torch.manual_seed(5)
        return [batch[:, 0].tolist() for batch in made(Sentences(), shuffle=True)[0]]

    assert order() == order()


@pytest.mark.parametrize(
    ("dataset", "keywords", "reason"),
    [
        (Sentences(), {}, "no shuffled loader"),
        (Sentences(), {"sampler": list(range(N))}, "no shuffled loader"),
        (Sentences(), {"batch_sampler": [[1, 2]], "batch_size": 1}, "no shuffled loader"),
        (Stream(), {}, "no shuffled loader"),
        (Noise(), {"shuffle": True}, "draws random numbers from torch"),
        (Equal(), {"shuffle": True}, "all of one length"),
        ([1, 2, 3], {"shuffle": True}, "have no lengths"),
    ],
)
def test_loaders_that_keep_their_order(dataset: Any, keywords: dict[str, Any], reason: str) -> None:
    activation = LengthBucketing().activation({})
    given = {"dataset": dataset, "batch_size": 8, **keywords}
    before = torch.get_rng_state()
    assert activation.on_loader(dict(given)) == given
    assert torch.equal(torch.get_rng_state(), before)
    on, why = activation.effect()
    assert not on
    assert reason in why


def test_the_code_that_is_offered_does_the_same() -> None:
    space: dict[str, Any] = {"torch": torch}
    exec(CODE, space)
    data = Sentences()
    batches = DataLoader(data, 8, sampler=space["ByLength"](data.lengths, 8), collate_fn=padded)
    assert sorted(index for batch in batches for index in batch[:, 0].tolist()) == list(range(N))
    spread = [max(lengths) - min(lengths) for lengths in ((batch >= 0).sum(1).tolist() for batch in batches)]
    assert sum(spread[:25]) / 25 < 10


@pytest.mark.parametrize(
    ("sample", "length"),
    [
        ((torch.ones(4), 1), 4), ({"ids": [1, 2, 3], "label": 0}, 3), ("abc", 3), (7, None),
        ((3, torch.ones(2, 5)), 2), ([torch.ones(6)], 6),
    ],
)  # fmt: skip
def test_what_a_length_is(sample: Any, length: int | None) -> None:
    assert length_of(sample) == length


def test_it_is_offered_where_batches_are_padded() -> None:
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.1})
    loading = Loading(
        process="train", num_processes=1, window_s=1, num_batches=9, num_samples=99, sample_s=2e-3, parts=(),
        used_bytes_per_sample=1, read_bytes_per_sample=None, reads_per_sample=None, padding=0.4,
    )  # fmt: skip
    padding = msgspec.structs.replace(seen, deep=Deep(loading=loading))
    (candidate,) = LengthBucketing().candidates(padding)
    assert candidate.numerics is Numerics.SEMANTIC
    for each, reason in (
        (seen, "were not looked at"),
        (
            msgspec.structs.replace(seen, deep=Deep(loading=msgspec.structs.replace(loading, padding=0.01))),
            "1.0% of",
        ),
        (observation(loaders=(loader(iterable=True),)), "an order of its own"),
    ):
        with pytest.raises(DoesNotApply, match=reason):
            LengthBucketing().candidates(each)
