"""gradient_accumulation: parts of a batch, the gradient of the whole, one step of everything else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hotloop.model.optimization import Numerics
from hotloop.optimize.catalogue.memory.gradient_accumulation.activation import MicroBatches
from hotloop.optimize.catalogue.memory.gradient_accumulation.row import GradientAccumulation
from hotloop.optimize.optimization import DoesNotApply

from . import recomputed_models as models
from .harness import activate, observation, root


class Words(nn.Module):  # type: ignore[misc]
    """Dropout would draw other masks; without it the numbers are the same."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.body, self.head = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 20)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        x = self.body(self.table(ids)).relu()
        return self.head(x if mask is None else x * mask)


def token_mean(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean over tokens that are not padding: a mean over parts would be another."""
    return functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=0)


def test_ragged_batches_and_token_means_come_out_right_and_the_scheduler_steps_once() -> None:
    plain = Words()
    model = copy.deepcopy(plain)
    activation = GradientAccumulation().activation({"micro_batches": 4})
    activate(activation, model)
    batches = [torch.randint(20, (size, 6)) for size in (8, 8, 7, 3)]
    batches[0][2:] = 0  # most of its tokens are padding: the parts have different weights
    rates = []
    for each in (plain, model):
        optimizer = torch.optim.SGD(each.parameters(), 0.5)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        for batch in batches:
            optimizer.zero_grad()
            token_mean(each(batch), batch).backward()
            optimizer.step()
            scheduler.step()
        rates.append(scheduler.get_last_lr())
    assert rates[0] == rates[1]
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert activation.effect() == (True, "4 batches in 15 parts, 15 recomputed in the backward")


def test_one_part_s_activations_are_there_at_a_time() -> None:
    def peak(model: nn.Module) -> int:
        live, most = 0, 0

        def pack(tensor: torch.Tensor) -> tuple[torch.Tensor, list[int]]:
            nonlocal live, most
            live += tensor.nbytes
            most = max(most, live)
            return tensor, [tensor.nbytes]

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed[0]):
            model(torch.randn(8, 5, 8)).sum().backward()
        return most

    model = models.Model()
    before = peak(model)
    activate(MicroBatches(4), model)
    model(torch.randn(8, 5, 8))  # the check of the first batch
    assert peak(model) < before / 2


class OwnLoss(Words):
    def forward(self, ids: torch.Tensor) -> Any:  # type: ignore[override]
        output = super().forward(ids)
        return output, token_mean(output, ids)


class Contrasts(Words):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        x = super().forward(ids)
        return x - x.mean(0, keepdim=True)


@pytest.mark.parametrize(
    ("model", "x", "reason"),
    [
        (OwnLoss(), torch.randint(20, (8, 6)), "returns its own loss, which cannot be reweighed"),
        (Contrasts(), torch.randint(20, (8, 6)), "depends on the others in its batch"),
        (models.UNet(), torch.randn(8, 3, 8, 8), "BatchNorm2d would see the statistics of parts"),
        (models.Model(models.SkipsByPython), torch.randn(8, 5, 8), "not torch's"),
    ],
)
def test_it_is_refused_where_it_would_be_wrong(model: nn.Module, x: torch.Tensor, reason: str) -> None:
    activation = MicroBatches(4)
    activate(activation, model)
    model(x)
    on, evidence = activation.effect()
    assert not on
    assert reason in evidence


def test_dropout_draws_the_same_mask_of_each_part_again() -> None:
    """As a loop over the parts would, which sums up the gradients by itself."""
    plain = models.Model()
    model = copy.deepcopy(plain)
    activate(MicroBatches(2), model)
    x = torch.randn(8, 5, 8)
    for each in (plain, model):
        torch.manual_seed(2)
        outputs = [each(part) for part in x.chunk(2)] if each is plain else [each(x)]
        torch.cat(outputs).square().mean().backward()
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_what_has_no_row_for_each_sample_is_given_whole() -> None:
    plain = Words()
    model = copy.deepcopy(plain)
    activate(MicroBatches(2), model)
    ids, mask = torch.randint(20, (8, 6)), torch.rand(6, 8)
    torch.testing.assert_close(plain(ids, mask=mask), model(ids, mask=mask))


def test_the_check_leaves_random_numbers_as_they_are() -> None:
    model = models.Model()
    activate(MicroBatches(2), model)
    torch.manual_seed(0)
    torch.rand(1)
    state = torch.get_rng_state()
    torch.manual_seed(0)
    torch.rand(1)
    from hotloop.optimize.catalogue.memory.gradient_accumulation.activation import _quietly

    with _quietly(model):
        torch.rand(3)
    assert torch.equal(state, torch.get_rng_state())
    assert all(part.training for part in model.modules())


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ({"roots": (root(layer_counts={"BatchNorm2d": 3}),)}, "semantic"),
        ({"distributed": "ddp"}, "no_sync"),
        ({"roots": (root(input_shapes=((1, 3, 8, 8),)),)}, "one sample"),
    ],
)
def test_it_does_not_apply(program: dict[str, Any], reason: str) -> None:
    with pytest.raises(DoesNotApply, match=reason):
        GradientAccumulation().candidates(observation(**program))


def test_there_are_not_more_parts_than_samples_and_dropout_is_held_to_the_curve() -> None:
    seen = observation(roots=(root(input_shapes=((4, 8),), layer_counts={"Linear": 1, "Dropout": 1}),))
    found = GradientAccumulation().candidates(seen)
    assert [one.params["micro_batches"] for one in found] == [2, 4]
    assert {one.numerics for one in found} == {Numerics.TOLERANCE}
