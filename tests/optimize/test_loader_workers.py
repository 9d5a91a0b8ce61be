"""loader_workers: batches made beside training, and the loaders that must keep their settings."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

from hotloop.model.observation import Phase, StepTime
from hotloop.optimize.catalogue.input.loader_workers.row import LoaderWorkers
from hotloop.optimize.optimization import DoesNotApply

from .harness import loader, observation


class Numbers(Dataset[int]):  # type: ignore[misc]
    """Counts; the length may be anything."""

    def __init__(self, length: int = 32) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset[int]):  # type: ignore[misc]
    def __iter__(self) -> Iterator[int]:
        return iter(range(32))


class Divided(IterableDataset[int]):  # type: ignore[misc]
    def __iter__(self) -> Iterator[int]:
        def mine() -> Iterator[int]:
            info = get_worker_info()
            start, every = (info.id, info.num_workers) if info else (0, 1)
            return iter(range(start, 32, every))

        return mine()


def adjusted(params: dict[str, Any], **keywords: Any) -> tuple[dict[str, Any], str]:
    """Return what a loader would be made with, and what is said of it."""
    activation = LoaderWorkers().activation(params)
    return activation.on_loader(dict(keywords)), activation.effect()[1]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_the_same_batches_come_from_workers(num_workers: int) -> None:
    activation = LoaderWorkers().activation({"num_workers": num_workers, "persistent_workers": True})
    activation.on_torch()
    keywords = {"dataset": Numbers(), "batch_size": 4, "shuffle": True}
    torch.manual_seed(1)
    plain = [batch.tolist() for batch in DataLoader(**keywords)]
    torch.manual_seed(1)
    changed = DataLoader(**activation.on_loader(dict(keywords)))
    assert [batch.tolist() for batch in changed] == plain
    on, evidence = activation.effect()
    assert on
    assert f"an iterator with {num_workers} worker processes" in evidence
    del changed


def test_a_loader_that_was_never_iterated_is_no_proof() -> None:
    activation = LoaderWorkers().activation({"num_workers": 2})
    activation.on_torch()
    DataLoader(**activation.on_loader({"dataset": Numbers(), "batch_size": 1}))
    on, evidence = activation.effect()
    assert not on
    assert "no workers were seen" in evidence


def test_an_iterable_dataset_would_be_repeated_and_is_left_alone() -> None:
    keywords, said = adjusted({"num_workers": 2}, dataset=Stream(), batch_size=4)
    assert keywords == {"dataset": keywords["dataset"], "batch_size": 4}
    assert "Stream does not divide itself between workers" in said


def test_an_iterable_dataset_that_divides_itself_gets_workers() -> None:
    keywords, _ = adjusted({"num_workers": 2}, dataset=Divided(), batch_size=4)
    assert keywords["num_workers"] == 2
    seen = sorted(int(value) for batch in DataLoader(**keywords) for value in batch)
    assert seen == list(range(32))


def test_short_loaders_keep_their_settings() -> None:
    keywords, said = adjusted({"num_workers": 2}, dataset=Numbers(12), batch_size=4)
    assert "num_workers" not in keywords
    assert "it yields only 3 batches" in said


def test_an_absurd_length_is_not_asked_for() -> None:
    class Absurd(torch.utils.data.Sampler[int]):  # type: ignore[misc]
        def __iter__(self) -> Iterator[int]:
            return iter(range(8))

        def __len__(self) -> int:
            raise AssertionError("a sampler's length was asked for")

    keywords, _ = adjusted({"num_workers": 2}, dataset=Numbers(10**10), sampler=Absurd(), batch_size=1)
    assert keywords["num_workers"] == 2


@pytest.mark.parametrize(
    "keywords",
    [
        {"batch_size": None},
        {"generator": torch.Generator().manual_seed(3), "shuffle": True, "batch_size": 1},
        {"batch_sampler": [[0, 1], [2, 3]]},
        {"collate_fn": lambda samples: torch.tensor(samples) + 0, "batch_size": 1},
        {"num_workers": 1, "timeout": 30.0, "batch_size": 1, "multiprocessing_context": "fork"},
    ],
    ids=["batch_size=None", "generator", "batch_sampler", "lambda", "timeout and context"],
)
def test_unusual_loaders_yield_the_same(keywords: dict[str, Any]) -> None:
    keywords["dataset"] = Numbers(8)
    changed, _ = adjusted({"num_workers": 2}, **keywords)
    assert changed["num_workers"] == 2
    state = keywords["generator"].get_state() if "generator" in keywords else None
    plain = [torch.as_tensor(batch).tolist() for batch in DataLoader(**keywords)]
    if state is not None:
        keywords["generator"].set_state(state)
    assert [torch.as_tensor(batch).tolist() for batch in DataLoader(**changed)] == plain


def test_zero_workers_drops_what_needs_them() -> None:
    changed, _ = adjusted(
        {"num_workers": 0},
        dataset=Numbers(),
        num_workers=2,
        prefetch_factor=4,
        persistent_workers=True,
        timeout=10,
        multiprocessing_context="fork",
    )
    assert list(changed) == ["dataset", "num_workers"]
    assert len(list(DataLoader(**changed))) == 32


def test_zero_workers_leaves_a_loader_that_prepares_its_workers() -> None:
    changed, said = adjusted({"num_workers": 0}, dataset=Numbers(), num_workers=2, worker_init_fn=print)
    assert changed["num_workers"] == 2
    assert "worker_init_fn" in said


def test_an_open_file_is_not_shared_between_processes(tmp_path: Path) -> None:
    class OnFile(Numbers):
        def __init__(self, file: Any) -> None:
            super().__init__()
            self.file = file

    class Wrapped(Numbers):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

    class Slotted:
        __slots__ = ("_file",)

        def __init__(self, file: Any) -> None:
            self._file = file

    path = tmp_path / "data.bin"
    path.write_bytes(b"0123")
    with path.open("rb") as file:
        held = (
            OnFile(file),
            [OnFile(file)],
            {"a": file},
            SimpleNamespace(file=file),
            Slotted(file),
            {"a": [SimpleNamespace(files={"b": file})]},
            partial(max, file),
            lambda: file,
            file.read,
            OnFile(file).__getitem__,
        )
        for dataset in (OnFile(file), *map(Wrapped, held)):
            changed, said = adjusted({"num_workers": 2}, dataset=dataset, batch_size=1)
            assert "num_workers" not in changed
            assert "holds an open BufferedReader" in said


def test_where_messages_are_written_is_no_hazard() -> None:
    logger = logging.getLogger("somebody's")
    logger.addHandler(logging.StreamHandler(sys.stdout))
    for held in (logger, sys.stderr, {"bar": SimpleNamespace(fp=sys.stderr)}):
        dataset = Numbers()
        dataset.held = held  # type: ignore[attr-defined]
        assert adjusted({"num_workers": 2}, dataset=dataset, batch_size=1)[0]["num_workers"] == 2


def test_spawned_workers_are_not_forced_on_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none: "spawn")
    changed, said = adjusted({"num_workers": 2}, dataset=Numbers(), batch_size=1)
    assert "num_workers" not in changed
    assert "spawn" in said


def test_looking_does_not_fix_the_start_method() -> None:
    import multiprocessing

    before = multiprocessing.get_start_method(allow_none=True)
    adjusted({"num_workers": 2}, dataset=Numbers(), batch_size=1)
    assert multiprocessing.get_start_method(allow_none=True) == before


def test_a_daemonic_process_may_have_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    class Daemon:
        daemon = True

    monkeypatch.setattr("multiprocessing.current_process", Daemon)
    assert "daemonic" in adjusted({"num_workers": 2}, dataset=Numbers(), batch_size=1)[1]


def test_workers_do_not_outlive_the_epoch_where_the_dataset_is_told_of_it() -> None:
    class Told(Numbers):
        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    changed, said = adjusted({"num_workers": 2, "persistent_workers": True}, dataset=Told(), batch_size=1)
    assert "persistent_workers" not in changed
    assert "the data set is told the epoch" in said


def test_asking_twice_gives_the_same() -> None:
    """Lightning and Fabric make a loader again from the arguments and attributes of the first."""
    activation = LoaderWorkers().activation({"num_workers": 2, "prefetch_factor": 3})
    once = activation.on_loader({"dataset": TensorDataset(torch.arange(32)), "batch_size": 2})
    made = DataLoader(**once)
    again = activation.on_loader({**once, "prefetch_factor": made.prefetch_factor, "timeout": made.timeout})
    assert [batch[0].tolist() for batch in DataLoader(**again)] == [batch[0].tolist() for batch in made]


def test_the_candidates_follow_the_cores_and_the_wait() -> None:
    seen = observation(
        {Phase.DATA: 0.6, Phase.FORWARD: 0.4}, loaders=(loader(num_iterators=3),), device="cuda"
    )
    candidates = LoaderWorkers().candidates(seen)
    assert [candidate.params["num_workers"] for candidate in candidates] == [2, 4, 1]
    assert all(candidate.params["persistent_workers"] for candidate in candidates)
    assert candidates[0].max_gain == pytest.approx(2.5)
    assert candidates[0].prior == pytest.approx(2.5)


@pytest.mark.parametrize(("dataset_len", "kept"), [(2_000, True), (10_000_000, False), (None, False)])
def test_workers_are_kept_where_epochs_are_short(dataset_len: int | None, kept: bool) -> None:
    seen = observation(
        {Phase.DATA: 0.6, Phase.FORWARD: 0.4},
        loaders=(loader(num_iterators=1, dataset_len=dataset_len, batch_size=20),),
        device="cuda",
    )
    step = StepTime(num=9, median_s=0.1, low_s=0.1, high_s=0.1, p50_s=0.1, p95_s=0.1, p99_s=0.1)
    for candidate in LoaderWorkers().candidates(msgspec.structs.replace(seen, step=step)):
        assert candidate.params.get("persistent_workers", False) is kept


def test_no_workers_is_tried_where_there_are_some() -> None:
    seen = observation({Phase.DATA: 0.001, Phase.FORWARD: 0.999}, loaders=(loader(num_workers=2),))
    (candidate,) = LoaderWorkers().candidates(seen)
    assert candidate.params == {"num_workers": 0}
    assert candidate.max_gain is None


@pytest.mark.parametrize(
    ("loaders", "data", "reason"),
    [
        ((), 0.5, "has no DataLoader"),
        ((loader(),), 0.004, "waiting for data takes 0.4% of the step"),
        ((loader(iterable=True),), 0.5, "IterableDataset"),
    ],
)
def test_it_does_not_apply(loaders: Any, data: float, reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        LoaderWorkers().candidates(observation({Phase.DATA: data, Phase.FORWARD: 1 - data}, loaders=loaders))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "num_workers is missing"),
        ({"num_workers": -1}, "num_workers is -1"),
        ({"num_workers": True}, "num_workers is True"),
        ({"num_workers": 0, "prefetch_factor": 2}, "need at least 1 worker"),
        ({"num_workers": 0, "persistent_workers": True}, "need at least 1 worker"),
        ({"num_workers": 2, "prefetch_factor": 0}, "prefetch_factor is 0"),
        ({"num_workers": 2, "workers": 1}, "unknown parameter 'workers'"),
    ],
)
def test_parameters_out_of_range_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LoaderWorkers().validate(params)


def test_on_a_cpu_the_workers_may_get_cores_of_the_training_process() -> None:
    shares = {Phase.DATA: 0.5, Phase.FORWARD: 0.5}
    seen = observation(shares, {"num_cores": 2}, loaders=(loader(),), num_threads=2)
    tried = [candidate.params for candidate in LoaderWorkers().candidates(seen)]
    assert {"num_workers": 1, "num_threads": 1} in tried
    assert {"num_workers": 1} in tried
    assert LoaderWorkers().environment({"num_workers": 1, "num_threads": 1})["OMP_NUM_THREADS"] == "1"
    assert LoaderWorkers().environment({"num_workers": 1}) == {}


def test_with_threads_to_spare_nothing_is_taken_from_the_training_process() -> None:
    shares = {Phase.DATA: 0.5, Phase.FORWARD: 0.5}
    seen = observation(shares, {"num_cores": 8}, loaders=(loader(),), num_threads=1)
    assert all("num_threads" not in candidate.params for candidate in LoaderWorkers().candidates(seen))


def test_threads_that_were_asked_for_are_part_of_the_proof() -> None:
    activation = LoaderWorkers().activation({"num_workers": 1, "num_threads": 1})
    activation.on_torch()
    changed = DataLoader(**activation.on_loader({"dataset": Numbers(), "batch_size": 4}))
    assert len(list(changed)) == 8
    torch.set_num_threads(2)  # the program's own wish is kept out
    assert torch.get_num_threads() == 1
    assert activation.effect()[0]
    del changed
