"""larger_batch: training loaders alone are changed, sizes have room, and nothing else can be proven beside it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from hotloop.model.goal import Aim
from hotloop.model.memory_account import PeakAccount
from hotloop.model.memory_plan import Held
from hotloop.model.optimization import Candidate
from hotloop.optimize.catalogue.memory.larger_batch.row import LargerBatch
from hotloop.optimize.optimization import DoesNotApply
from hotloop.tune.design.for_goal import unoffered
from hotloop.tune.verdict.other_batch_size import other_batch_size

from .harness import loader, observation

GIB = 1 << 30


def changed(**given: Any) -> int | None:
    """The size that a loader with these keywords gets."""
    dataset = TensorDataset(torch.arange(64.0))
    activation = LargerBatch().activation({"batch_size": 32, "instead_of": 8})
    made = DataLoader(**activation.on_loader({"dataset": dataset, **given}))
    return made.batch_size


def test_loaders_that_shuffle_get_the_size_and_evaluation_keeps_its_own() -> None:
    assert changed(batch_size=8, shuffle=True) == 32
    assert changed(batch_size=8, sampler=torch.utils.data.RandomSampler(range(64))) == 32
    assert changed(batch_size=8) == 8
    assert changed(batch_size=16, shuffle=True) == 16


def test_the_effect_says_what_is_left_to_the_user() -> None:
    activation = LargerBatch().activation({"batch_size": 32, "instead_of": 8})
    assert activation.effect() == (False, "no loader that shuffles makes batches of 8")
    activation.on_loader({"dataset": [], "batch_size": 8, "shuffle": True})
    activation.on_batch(torch.zeros(32))
    is_on, said = activation.effect()
    assert is_on
    assert "learning rate and schedule are as they were" in said


def test_multiples_that_fit_the_data_set_are_offered_with_the_samples_of_an_average_batch() -> None:
    found = LargerBatch().candidates(observation(loaders=(loader(batch_size=8, dataset_len=50),)))
    assert [one.params["batch_size"] for one in found] == [16, 32]
    # 7 batches of 50 samples, then 4, then 2.
    assert [one.samples for one in found] == [pytest.approx(7 / 4), pytest.approx(7 / 2)]
    assert all("learning rate" in one.caution for one in found)


def with_account(activations: int, of: int = 10) -> Any:
    """An observed program that takes 2 GiB, so much of it activations, on a machine of so many GiB."""
    seen = observation(loaders=(loader(),), machine={"memory_bytes": of * GIB})
    account = PeakAccount(
        device="cpu",
        peak_bytes=2 * GIB,
        low_bytes=2 * GIB,
        high_bytes=2 * GIB,
        num_steps=2,
        phase="backward",
        reached_by=None,
        held=Held(
            by_class={"parameters": 2 * GIB - activations, "activations": activations},
            by_module={},
            by_line={},
        ),
    )
    memory = msgspec.structs.replace(seen.memory, peak_bytes=2 * GIB, account=account)
    return msgspec.structs.replace(seen, memory=memory)


def test_sizes_without_head_room_are_not_tried() -> None:
    sizes = [one.params["batch_size"] for one in LargerBatch().candidates(with_account(2 * GIB))]
    assert sizes == [16, 32]  # eight times two are more than nine
    assert len(LargerBatch().candidates(with_account(GIB // 2))) == 3
    with pytest.raises(DoesNotApply, match="more than 90% of memory"):
        LargerBatch().candidates(with_account(2 * GIB, of=4))


def test_it_is_tried_by_name_alone() -> None:
    row = LargerBatch()
    assert "--only larger_batch" in (unoffered(row, Aim(), ()) or "")
    assert unoffered(row, Aim(), ("larger_batch",)) is None


def test_nothing_that_touches_numbers_can_be_proven_beside_it() -> None:
    batch = Candidate(name="larger_batch", samples=4.0)
    alone = other_batch_size([batch])
    assert alone.passed
    assert not alone.measured
    assert "learning rate" in alone.evidence
    assert other_batch_size([batch, Candidate(name="allocator", touches_numbers=False)]).passed
    beside = other_batch_size([batch, Candidate(name="fused_optimizer")])
    assert not beside.passed
    assert "fused_optimizer" in beside.evidence
