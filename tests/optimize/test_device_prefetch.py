"""device_prefetch: the same batches, in the same order, under the same random numbers; made in another thread."""

from __future__ import annotations

import concurrent.futures
import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset, dataloader

from hotloop.model.observation import Phase
from hotloop.optimize.catalogue.input.device_prefetch.activation import NextBatch
from hotloop.optimize.catalogue.input.device_prefetch.moved_ahead import _is_plain
from hotloop.optimize.catalogue.input.device_prefetch.rewrite import _CLASS
from hotloop.optimize.catalogue.input.device_prefetch.row import DevicePrefetch
from hotloop.optimize.dataset.samples import same
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation

N = 60


class Rows(Dataset[Any]):
    """Notes which thread reads."""

    def __init__(self) -> None:
        self.rows = torch.arange(N * 3.0).view(N, 3)
        self.threads: list[str] = []
        self.scale = 1.0

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        return self.change(self.rows[index] * self.scale), index

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row


class Noise(Rows):
    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row + torch.randn(3)


class Rare(Rows):
    """Draws for one sample in fifteen."""

    def change(self, row: torch.Tensor) -> torch.Tensor:
        return row + random.random() if int(row[0]) % 45 == 0 else row


class Counts(Rows):
    seen = 0

    def change(self, row: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return row


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(range(N))


class Curriculum(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(N))

    def __len__(self) -> int:
        return N


@pytest.fixture
def prefetch(monkeypatch: pytest.MonkeyPatch) -> Callable[[], NextBatch]:
    """Install the activation; torch's classes are as before afterwards."""
    for cls in (dataloader._SingleProcessDataLoaderIter, dataloader._MultiProcessingDataLoaderIter):
        monkeypatch.setattr(cls, "_next_data", cls._next_data)
    monkeypatch.setattr(DataLoader, "_get_iterator", DataLoader._get_iterator)
    workers = dataloader._MultiProcessingDataLoaderIter
    monkeypatch.setattr(workers, "_reset", workers._reset)

    def install() -> NextBatch:
        activation = NextBatch()
        activation.on_torch()
        return activation

    return install


def trained(batches: Any, num_epochs: int = 3, leave_at: int | None = None) -> list[Any]:
    """Return all batches of some epochs, with the random numbers that the step draws between them."""
    torch.manual_seed(1), random.seed(1)
    seen: list[Any] = []
    for _ in range(num_epochs):
        for number, batch in enumerate(batches):
            seen.append((batch, torch.rand(2), random.random()))
            if number == leave_at:
                break
    return seen


@pytest.mark.parametrize("leave_at", [None, 4])
@pytest.mark.parametrize(
    "keywords",
    [{"shuffle": True}, {}, {"shuffle": True, "generator": torch.Generator()}, {"drop_last": True}],
    ids=["shuffled", "in order", "its own generator", "last dropped"],
)
def test_batches_and_random_numbers_are_the_same(
    keywords: dict[str, Any], leave_at: int | None, prefetch: Callable[[], NextBatch]
) -> None:
    def batches() -> Any:
        if "generator" in keywords:
            keywords["generator"].manual_seed(2)
        return DataLoader(Rows(), batch_size=7, **keywords)

    fresh = trained(batches(), leave_at=leave_at)
    activation = prefetch()
    assert same(trained(batches(), leave_at=leave_at), fresh)
    on, evidence = activation.effect()
    assert on, evidence


def test_cuda_begins_when_the_program_begins_it(
    prefetch: Callable[[], NextBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may choose its devices, or fork, after torch is imported; a question would begin CUDA before that."""
    asked: list[None] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: asked.append(None))
    for name in ("to", "cuda"):
        monkeypatch.setattr(torch.Tensor, name, getattr(torch.Tensor, name))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    prefetch()
    assert not asked


def test_what_only_the_programs_thread_may_read_is_read_there(prefetch: Callable[[], NextBatch]) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table numbers (value)")
    connection.executemany("insert into numbers values (?)", [(value,) for value in range(N)])
    dataset = Rows()
    dataset.change = lambda row: row + connection.execute("select max(value) from numbers").fetchone()[0]  # type: ignore[method-assign]
    fresh = trained(DataLoader(dataset, batch_size=7))
    activation = prefetch()
    assert same(trained(DataLoader(dataset, batch_size=7)), fresh)
    on, reason = activation.effect()
    assert not on
    assert reason.startswith("a thread could not make a batch: ProgrammingError(")
    connection.close()


def test_an_error_of_the_data_set_reaches_the_program(prefetch: Callable[[], NextBatch]) -> None:
    def fails_late(row: torch.Tensor) -> torch.Tensor:
        if row[0] > 100:
            raise KeyError("the sample is missing")
        return row

    dataset = Rows()
    dataset.change = fails_late  # type: ignore[method-assign]
    prefetch()
    batches = iter(DataLoader(dataset, batch_size=7))
    assert len([next(batches) for _ in range(4)]) == 4
    with pytest.raises(KeyError, match="the sample is missing"):
        next(batches)


def test_another_thread_makes_them(prefetch: Callable[[], NextBatch]) -> None:
    activation = prefetch()
    threads: list[int] = []
    dataset = Rows()
    dataset.change = lambda row: threads.append(threading.get_ident()) or row  # type: ignore[func-returns-value]
    list(DataLoader(dataset, batch_size=1))
    others = sum(ident != threading.get_ident() for ident in threads)
    assert 0 < activation.num_ahead <= others


def test_the_thread_computes_alone_and_leaves_the_others_their_threads(
    prefetch: Callable[[], NextBatch],
) -> None:
    """More threads than cores would have the program's own sleep at every barrier."""
    prefetch()
    before, seen = torch.get_num_threads(), {}
    torch.set_num_threads(2)
    try:
        dataset = Rows()

        def change(row: torch.Tensor) -> torch.Tensor:
            seen[threading.get_ident()] = torch.get_num_threads()
            return row

        dataset.change = change  # type: ignore[method-assign]
        list(DataLoader(dataset, batch_size=1))
        own = threading.get_ident()
        assert seen.pop(own) == torch.get_num_threads() == 2
        assert list(seen.values()) == [1]
        later = threading.Thread(target=lambda: seen.update(later=torch.get_num_threads()))
        later.start()
        later.join()
        assert seen["later"] == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: DataLoader(Noise(), batch_size=7), "draws random numbers from torch"),
        (lambda: DataLoader(Counts(), batch_size=7), r"changes self.seen of the data set"),
        (lambda: DataLoader(Stream(), batch_size=7), "IterableDataset may do more"),
        (lambda: DataLoader(Rows(), batch_size=7, sampler=Curriculum()), "sampler Curriculum may go by"),
        (lambda: DataLoader(Rows(), batch_size=7, num_workers=1), "workers make batches ahead already"),
        (
            lambda: DataLoader(
                Rows(),
                batch_size=7,
                sampler=torch.utils.data.RandomSampler(
                    range(N), replacement=True, generator=torch.Generator().manual_seed(1)
                ),
            ),
            "draws from a generator of the program's",
        ),
    ],
    ids=["draws", "changes itself", "iterable", "own sampler", "workers", "generator"],
)
def test_what_is_left_alone(make: Callable[[], Any], reason: str, prefetch: Callable[[], NextBatch]) -> None:
    fresh = trained(make())
    activation = prefetch()
    assert same(trained(make()), fresh)
    on, why = activation.effect()
    assert not on
    assert reason in why


def test_it_has_acted_only_where_no_loader_was_left_alone(prefetch: Callable[[], NextBatch]) -> None:
    """A patch changes all loaders that feed training."""
    activation = prefetch()
    trained(
        zip(DataLoader(Rows(), batch_size=7), DataLoader(Noise(), batch_size=7), strict=True), num_epochs=1
    )
    assert activation.num_ahead
    assert activation.effect() == (False, "making a batch draws random numbers from torch")


def test_the_written_class_leaves_the_threads_of_others_as_they_are() -> None:
    given = torch.get_num_threads()
    known: dict[str, Any] = {"torch": torch, "futures": concurrent.futures}
    exec(_CLASS.format(torch="torch", futures="futures"), known)
    seen: list[int] = []
    try:
        torch.set_num_threads(2)
        for batch in known["NextBatchLoader"](Rows(), batch_size=30):
            asks = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
            asks.start(), asks.join()
            assert len(batch[1]) == 30
        assert (torch.get_num_threads(), seen) == (2, [2, 2])
    finally:
        torch.set_num_threads(given)


def test_a_data_set_that_draws_now_and_then_is_seen_before_anything_is_made_ahead(
    prefetch: Callable[[], NextBatch],
) -> None:
    activation = prefetch()
    list(DataLoader(Rare(), batch_size=15))
    list(DataLoader(Rare(), batch_size=15))
    assert activation.effect() == (False, "making a batch draws random numbers from random")


def test_what_the_program_changes_between_batches_is_in_the_next_one(
    prefetch: Callable[[], NextBatch],
) -> None:
    activation = prefetch()
    dataset = Rows()
    for number, (rows, index) in enumerate(DataLoader(dataset, batch_size=5)):
        assert torch.equal(rows, dataset.rows[index] * number if number else dataset.rows[index])
        dataset.scale = float(number + 1)
    assert activation.num_ahead == 8


def test_an_error_comes_where_it_came(prefetch: Callable[[], NextBatch]) -> None:
    prefetch()

    class Broken(Rows):
        def change(self, row: torch.Tensor) -> torch.Tensor:
            if int(row[0]) == 45 * 3:
                raise ValueError("row 45")
            return row

    seen = []
    with pytest.raises(ValueError, match="row 45"):
        seen.extend(DataLoader(Broken(), batch_size=5))
    batches = iter(DataLoader(Broken(), batch_size=5))
    for _ in range(9):
        next(batches)
    with pytest.raises(ValueError, match="row 45"):
        next(batches)


def test_an_evaluation_is_left_alone_and_a_switch_loses_no_batch(prefetch: Callable[[], NextBatch]) -> None:
    activation = prefetch()
    with torch.no_grad():
        list(DataLoader(Rows(), batch_size=5))
    assert activation.num_ahead == 0
    seen: list[int] = []
    for number, (_, index) in enumerate(DataLoader(Rows(), batch_size=5)):
        seen.extend(index.tolist())
        activation.switch(number % 3 != 2)
    assert seen == list(range(N))


def test_loaders_with_workers_can_be_made_while_a_batch_is_under_way(
    prefetch: Callable[[], NextBatch],
) -> None:
    prefetch()
    data = TensorDataset(torch.arange(float(N)))
    for number, _ in enumerate(DataLoader(data, batch_size=5)):
        if number in (6, 9):
            assert len(list(DataLoader(data, batch_size=20, num_workers=1))) == 3


class Moves:
    """Stands for a device: notes what is moved."""

    def __init__(self) -> None:
        self.num_used = 0

    def move(self, batch: Any) -> None:
        self.num_used += len(batch)


@pytest.mark.parametrize("leave_at", [None, 4])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.slow
def test_beside_workers_batches_are_moved_ahead(
    persistent: bool, leave_at: int | None, prefetch: Callable[[], NextBatch]
) -> None:
    def batches() -> Any:
        return DataLoader(Rows(), batch_size=7, shuffle=True, num_workers=1, persistent_workers=persistent)

    fresh = trained(batches(), 2, leave_at)
    activation = prefetch()
    moves: Any = Moves()
    activation._moved = moves
    assert same(trained(batches(), 2, leave_at), fresh)
    assert activation.effect()[0]
    assert moves.num_used >= 2 * activation.num_ahead


def test_only_a_plain_copy_to_the_device_takes_the_one_made_ahead() -> None:
    cuda = torch.device("cuda", 0)
    assert _is_plain(("cuda",), {}, cuda)
    assert _is_plain((torch.device("cuda:0"),), {"non_blocking": True}, cuda)
    assert _is_plain((), {}, cuda)
    assert not _is_plain(("cuda:1",), {}, cuda)
    assert not _is_plain(("cpu",), {}, cuda)
    assert not _is_plain((torch.float16,), {}, cuda)
    assert not _is_plain(("cuda", torch.float16), {}, cuda)
    assert not _is_plain(("cuda",), {"copy": True}, cuda)


def test_where_it_is_proposed() -> None:
    seen = observation(loaders=(loader(),), shares={Phase.DATA: 0.4, Phase.FORWARD: 0.6})
    (candidate,) = DevicePrefetch().candidates(seen)
    assert candidate.max_gain == pytest.approx(1 / 0.6)
    on_device = observation(
        loaders=(loader(num_workers=2),), shares={Phase.DATA: 0.1, Phase.TRANSFER: 0.3}, device="cuda"
    )
    assert DevicePrefetch().candidates(on_device)[0].max_gain == pytest.approx(1 / 0.6)
    for loaders, reason in (
        ((loader(iterable=True),), "IterableDataset"),
        ((loader(num_workers=2),), "ahead already"),
    ):
        with pytest.raises(DoesNotApply, match=reason):
            DevicePrefetch().candidates(observation(loaders=loaders))
