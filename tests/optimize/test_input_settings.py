"""loader_prefetch, persistent_workers and pinned_memory: settings of loaders that have what they need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hotloop.model.observation import Phase, RunAccount
from hotloop.optimize.catalogue.input.loader_prefetch.row import LoaderPrefetch
from hotloop.optimize.catalogue.input.loader_workers.row import LoaderWorkers
from hotloop.optimize.catalogue.input.persistent_workers.row import PersistentWorkers
from hotloop.optimize.catalogue.input.pinned_memory.activation import PinnedCopies
from hotloop.optimize.catalogue.input.pinned_memory.row import PinnedMemory
from hotloop.optimize.loaders.shadow_loader import ShadowLoader
from hotloop.optimize.optimization import DoesNotApply, Optimization
from hotloop.patterns.told_datasets import changed_from_outside

from .harness import loader, observation

WAITING = {Phase.DATA: 0.5, Phase.FORWARD: 0.5}
DATA = TensorDataset(torch.arange(8))


def values(loaded: Any) -> list[Any]:
    return [batch[0].tolist() for batch in loaded]


def test_prefetch_reaches_workers_only() -> None:
    activation = LoaderPrefetch().activation({"prefetch_factor": 5})
    activation.on_torch()
    assert activation.on_loader({"dataset": DATA}) == {"dataset": DATA}
    assert activation.on_loader({"dataset": DATA, "num_workers": 0}) == {"dataset": DATA, "num_workers": 0}
    assert not activation.effect()[0]
    made = DataLoader(**activation.on_loader({"dataset": DATA, "num_workers": 1}))
    assert values(made) == values(DataLoader(DATA))
    assert activation.effect() == (True, "workers with 5 batches ahead were seen")


def test_prefetch_without_workers_is_what_torch_refuses() -> None:
    with pytest.raises(ValueError, match="prefetch_factor"):
        DataLoader(DATA, num_workers=0, prefetch_factor=2)


def test_prefetch_candidates_double_what_is_there() -> None:
    seen = observation(WAITING, loaders=(loader(num_workers=2, prefetch_factor=3),))
    assert [c.params["prefetch_factor"] for c in LoaderPrefetch().candidates(seen)] == [6, 12]
    assert all(c.max_gain == pytest.approx(2.0) for c in LoaderPrefetch().candidates(seen))


@pytest.mark.parametrize(
    ("loaders", "shares", "reason"),
    [
        ((), WAITING, "has no DataLoader"),
        ((loader(),), WAITING, "no training loader has workers"),
        ((loader(num_workers=2),), {Phase.DATA: 0.001}, "waiting for data takes 0.1%"),
    ],
)
def test_prefetch_does_not_apply(loaders: Any, shares: Any, reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        LoaderPrefetch().candidates(observation(shares, loaders=loaders))


def test_workers_persist_from_epoch_to_epoch() -> None:
    activation = PersistentWorkers().activation({})
    activation.on_torch()
    assert activation.on_loader({"dataset": DATA}) == {"dataset": DATA}
    made = DataLoader(**activation.on_loader({"dataset": DATA, "num_workers": 1}))
    assert values(made) == values(made) == values(DataLoader(DATA))
    assert activation.effect() == (True, "workers that live on after the epoch were seen")
    del made


def test_workers_without_loader_workers_are_refused_by_torch() -> None:
    with pytest.raises(ValueError, match="persistent_workers"):
        DataLoader(DATA, num_workers=0, persistent_workers=True)


def test_a_dataset_that_is_told_the_epoch_keeps_its_workers_short() -> None:
    class Told(TensorDataset):  # type: ignore[misc]
        def set_epoch(self, epoch: int) -> None:
            """Reshuffle."""

    activation = PersistentWorkers().activation({})
    keywords = {"dataset": Told(torch.arange(4)), "num_workers": 1}
    assert activation.on_loader(dict(keywords)) == keywords
    assert activation.effect() == (False, "the data set is told the epoch")


class Curriculum(TensorDataset):  # type: ignore[misc]
    """Yields what the program has set it to."""

    level = 0.0

    def __getitem__(self, index: int) -> Any:
        return (torch.tensor(self.level),)


@pytest.mark.parametrize(
    ("row", "params"),
    [(PersistentWorkers(), {}), (LoaderWorkers(), {"num_workers": 1, "persistent_workers": True})],
)
def test_workers_hear_of_a_data_set_that_the_program_changes(row: Optimization, params: Any) -> None:
    activation = row.activation(params)
    activation.on_torch()
    data = Curriculum(torch.arange(4))
    made = DataLoader(**activation.on_loader({"dataset": data, "num_workers": 1, "batch_size": 2}))
    seen = []
    for level in range(3):
        data.level = float(level)
        seen.append(values(made))
    assert seen == [[[0.0, 0.0]] * 2, [[1.0, 1.0]] * 2, [[2.0, 2.0]] * 2]
    on, reason = activation.effect()
    assert not on
    assert "self.level of the data set changes between epochs" in reason
    del made


def test_a_second_loader_s_workers_hear_of_it_too() -> None:
    data = Curriculum(torch.arange(4))
    shadow = ShadowLoader(DataLoader(data, batch_size=4), 1, None, next)
    seen = []
    for level in range(3):
        data.level = float(level)
        seen.append(shadow.next(epoch=object())[0][0].item())
    shadow.close()
    assert seen == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("data.p = epoch", "train.py:4"),
        ("data.transform.p += 1", "train.py:4"),
        ("data.set_epoch(epoch)", "train.py:4"),
        ("loader.dataset.rows[0] = epoch", "train.py:4"),
        ("setattr(data, 'p', epoch)", "train.py:4"),
        ("sampler.set_epoch(epoch)", ""),
        ("model.p = data.p", ""),
        ("print(data[0])", ""),
    ],
)
def test_the_source_says_that_a_data_set_is_changed(lines: str, place: str) -> None:
    program = (
        f"data = Images()\nloader = DataLoader(data, num_workers=2)\nfor epoch in range(3):\n    {lines}\n"
    )
    assert changed_from_outside([("train.py", program)]) == place


def test_what_is_set_before_the_loader_is_made_is_heard() -> None:
    program = """
data = Images()
data.transform = crop
for path in paths:
    data.append(path)
loader = DataLoader(data)
"""
    assert changed_from_outside([("train.py", program)]) == ""


def test_a_data_set_that_is_told_the_epoch_is_not_offered() -> None:
    with pytest.raises(DoesNotApply, match="told the epoch"):
        PersistentWorkers().candidates(
            observation(loaders=(loader(num_workers=2, num_iterators=3, told_epoch=True),))
        )
    seen = observation(WAITING, loaders=(loader(num_iterators=3, told_epoch=True),), device="cuda")
    assert all("persistent_workers" not in each.params for each in LoaderWorkers().candidates(seen))


@pytest.mark.parametrize(
    ("loaders", "reason"),
    [
        ((loader(),), "no training loader has workers"),
        ((loader(num_workers=2, persistent_workers=True, num_iterators=4),), "persistent already"),
        ((loader(num_workers=2, num_iterators=1),), "a second time"),
    ],
)
def test_persistence_does_not_apply(loaders: Any, reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        PersistentWorkers().candidates(observation(loaders=loaders))


def test_persistence_applies_where_workers_start_again_and_again() -> None:
    (candidate,) = PersistentWorkers().candidates(
        observation(loaders=(loader(num_workers=2, num_iterators=3),))
    )
    assert candidate.label == "persistent_workers"
    assert candidate.prior == pytest.approx(1.05)


def test_persistence_is_expected_to_save_what_lies_between_epochs() -> None:
    parts = {"import_s": 3.0, "step_forward_s": 6.0, "epoch_boundary_s": 2.0}
    seen = msgspec.structs.replace(
        observation(loaders=(loader(num_workers=2, num_iterators=3),)),
        run=RunAccount(wall_s=11.0, parts=parts),
    )
    (candidate,) = PersistentWorkers().candidates(seen)
    assert candidate.prior == pytest.approx(8 / 6)


def test_pinning_needs_a_device() -> None:
    with pytest.raises(DoesNotApply, match="the model is on the CPU"):
        PinnedMemory().candidates(observation(loaders=(loader(),)))
    (candidate,) = PinnedMemory().candidates(
        observation({Phase.TRANSFER: 0.2, Phase.FORWARD: 0.8}, loaders=(loader(),), device="cuda")
    )
    assert candidate.prior == pytest.approx(1 / 0.9)
    assert candidate.max_gain == pytest.approx(1.25)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without an accelerator")
def test_without_an_accelerator_nothing_is_pinned() -> None:
    activation = PinnedMemory().activation({})
    assert activation.on_loader({"dataset": DATA}) == {"dataset": DATA}


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> tuple[PinnedCopies, list[dict[str, Any]]]:
    """Return the activation on stand-ins for `Tensor.to` and `Tensor.cuda`, and their calls."""
    calls: list[dict[str, Any]] = []

    def record(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        calls.append(kwargs)
        return tensor

    monkeypatch.setattr(torch.Tensor, "to", record)
    monkeypatch.setattr(torch.Tensor, "cuda", record)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: tensor.numel() == 2)
    activation = PinnedCopies()
    activation.on_torch()
    return activation, calls


def test_only_pinned_tensors_on_their_way_to_a_device_do_not_wait(copies: Any) -> None:
    activation, calls = copies
    pinned, plain = activation.on_batch((torch.zeros(2), torch.zeros(3)))
    pinned.to("cuda")
    pinned.to(torch.device("cuda", 0), torch.float16)
    pinned.to(device="cuda:0")
    pinned.to(0)
    pinned.cuda()
    assert calls == [
        {"non_blocking": True},
        {"non_blocking": True},
        {"device": "cuda:0", "non_blocking": True},
        {"non_blocking": True},
        {"non_blocking": True},
    ]
    calls.clear()
    pinned.to("cpu")
    pinned.to(torch.float16)
    pinned.to(plain)
    pinned.to("cuda", torch.float16, True)
    pinned.to("cuda", non_blocking=False)
    pinned.cuda(0, False)
    plain.to("cuda")
    plain.cuda()
    assert calls == [{}, {}, {}, {}, {"non_blocking": False}, {}, {}, {}]
    assert activation.num_copies == 5
    assert activation.effect() == (False, "no iterator that pins its batches was seen")


def test_buffers_of_the_programs_own_are_waited_for(copies: Any) -> None:
    activation, calls = copies
    buffer = torch.zeros(2)
    batch: Any = {"x": [torch.zeros(2)], "y": SimpleNamespace(label=torch.zeros(2))}
    activation.on_batch(batch)
    buffer.copy_(batch["x"][0])
    buffer.to("cuda")
    assert calls == [{}]
    for tensor in (batch["x"][0], batch["x"][0].view(2, 1), batch["y"].label):
        tensor.to("cuda")
    assert calls[1:] == [{"non_blocking": True}] * 3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_batches_are_pinned_and_copied_without_waiting() -> None:
    activation = PinnedCopies()
    activation.on_torch()
    made = DataLoader(**activation.on_loader({"dataset": DATA, "batch_size": 4}))
    batches = map(activation.on_batch, made)
    assert [batch[0].to("cuda").tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    on, evidence = activation.effect()
    assert on, evidence
