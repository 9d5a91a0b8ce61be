"""pad_to_multiple and preallocate_longest: what they do to batches and models, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hotloop.model.optimization import Numerics
from hotloop.model.program import ProgramFacts
from hotloop.optimize.catalogue.input.pad_to_multiple.row import PadToMultiple
from hotloop.optimize.catalogue.input.preallocate_longest.row import PreallocateLongest
from hotloop.optimize.optimization import DoesNotApply

from .harness import activate, loader, observation, root

PADDED = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0], [4, 3, 2, 1, 6]])


def batch_of(tokens: torch.Tensor) -> dict[str, Any]:
    return {
        "ids": tokens,
        "labels": torch.where(tokens == 0, -100, tokens),
        "weight": torch.ones(len(tokens)),
    }


def test_batches_are_padded_with_what_pads_them() -> None:
    activation = PadToMultiple().activation({"multiple": 8})
    first = activation.on_batch(batch_of(PADDED))
    assert first["ids"].shape == first["labels"].shape == (3, 8)
    assert torch.equal(first["ids"][:, :5], PADDED)
    assert first["ids"][:, 5:].eq(0).all()
    assert first["labels"][:, 5:].eq(-100).all()
    assert first["weight"].shape == (3,)
    assert activation.on_batch(batch_of(torch.ones(2, 16, dtype=torch.long)))["ids"].shape == (2, 16)
    assert activation.effect() == (True, "1 batches were padded to a multiple of 8")


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (batch_of(torch.arange(1, 11).view(2, 5)), "no batch has shown with what it is padded"),
        ((torch.ones(2, 5), torch.ones(2)), "no batch held integer tensors"),
        ((PADDED, PADDED[:, :3]), "no batch held integer tensors"),
    ],
)
def test_batches_that_are_left_as_they_are(batch: Any, reason: str) -> None:
    activation = PadToMultiple().activation({"multiple": 8})
    assert activation.on_batch(batch) is batch
    on, why = activation.effect()
    assert not on
    assert why.startswith(reason)


def test_an_evaluation_is_not_padded() -> None:
    activation = PadToMultiple().activation({"multiple": 8})
    with torch.no_grad():
        assert activation.on_batch((PADDED,))[0] is PADDED


class Model(nn.Module):
    """Keeps the shapes it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Embedding(9, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.norm = nn.BatchNorm1d(1)
        self.seen: list[tuple[int, ...]] = []

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.seen.append(tuple(tokens.shape))
        return self.norm(self.body(tokens).mean(1))


def trained(dataset: Any) -> tuple[Model, Any, torch.Tensor]:
    """Return a model after its first step, what was activated, and the next random number."""
    torch.manual_seed(1)
    model = Model()
    activation = PreallocateLongest().activation({})
    activation.on_loader({"dataset": dataset, "batch_size": 2, "shuffle": True})
    activate(activation, model)
    model(torch.tensor([[1, 2, 3], [4, 5, 6]])).sum().backward()
    return model, activation, torch.rand(3)


def test_the_longest_length_comes_first_and_leaves_no_trace() -> None:
    model, activation, drawn = trained([torch.ones(length) for length in (2, 7, 3)])
    plain, without, expected = trained([torch.ones(3)] * 3)
    assert (model.seen, plain.seen) == ([(2, 7), (2, 3)], [(2, 3)])
    assert activation.effect() == (True, "a first batch of length 3 was run at length 7 before")
    assert without.effect() == (False, "its samples are all of one length")
    assert torch.equal(drawn, expected)
    for (name, value), (_, other) in zip(model.state_dict().items(), plain.state_dict().items(), strict=True):
        assert torch.equal(value, other), name
    for parameter, other in zip(model.parameters(), plain.parameters(), strict=True):
        assert parameter.grad is not None
        assert other.grad is not None
        assert torch.equal(parameter.grad, other.grad)


@pytest.mark.parametrize("cls", [PadToMultiple, PreallocateLongest])
def test_both_are_offered_on_a_device_only(cls: Any) -> None:
    assert cls.numerics is Numerics.SEMANTIC
    with pytest.raises(DoesNotApply, match="the model is on the CPU"):
        cls().candidates(observation(loaders=(loader(),)))
    with pytest.raises(DoesNotApply, match=r"no batch was seen to be padded|in one length"):
        cls().candidates(observation(loaders=(loader(),), device="cuda"))


def test_lengths_that_vary_are_evidence() -> None:
    varies = observation(loaders=(loader(),), device="cuda", roots=(root(shapes_vary=True),))
    assert isinstance(varies.program, ProgramFacts)
    assert [one.params for one in PreallocateLongest().candidates(varies)] == [{}]
