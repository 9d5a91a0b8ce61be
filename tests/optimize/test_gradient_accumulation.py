"""gradient_accumulation: parts of a batch, the gradient of the whole, one step of everything else."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hotloop.model.optimization import Numerics
from hotloop.optimize.catalogue.memory.gradient_accumulation.activation import MicroBatches
from hotloop.optimize.catalogue.memory.gradient_accumulation.row import GradientAccumulation
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.program.containers import tensors_in

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


class OwnLossInTraining(Words):
    """As mixtures of experts do."""

    def forward(self, ids: torch.Tensor) -> Any:  # type: ignore[override]
        output = super().forward(ids)
        share = output.softmax(-1).mean((0, 1))
        return (output, share.square().sum()) if self.training else output


class SharesInTraining(Words):
    """One number for each of eight experts, as many as there are samples."""

    def forward(self, ids: torch.Tensor) -> Any:  # type: ignore[override]
        output = super().forward(ids)
        return (output, output.mean((0, 1))[:8]) if self.training else output


class NormalizesInTraining(Words):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        x = super().forward(ids)
        return x - 1e-3 * x.mean(0, keepdim=True) if self.training else x


class KeepsStatistics(Words):
    """A sample's output does not depend on the others; what is kept for the evaluation does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("stored", torch.zeros(20))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        x = super().forward(ids)
        stored = self.stored
        stored.lerp_(x.detach().mean((0, 1)), 0.1)
        return x


class Tags(Words):
    """One sentence: its words come one after the other where a batch would have its samples."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.LSTM(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        hidden, _ = self.body(self.table(ids).view(len(ids), 1, -1))
        return functional.log_softmax(self.head(hidden.view(len(ids), -1)), dim=1)


class Gates(Tags):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return (1e-3 * super().forward(ids)).sigmoid()


class AttendsOverTime(Words):
    """As the tutorial's language model, which is given (time, batch)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.TransformerEncoderLayer(8, 2, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return self.head(self.body(self.table(ids), mask))


class Recurrent(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.LSTM(8, 8, num_layers=2, batch_first=True)

    def forward(self, x: torch.Tensor, state: Any) -> torch.Tensor:
        return self.body(x, state)[0]


class Packs(Recurrent):
    def forward(self, x: torch.Tensor, lengths: Any) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.body(packed)[0], batch_first=True)[0]


class Cuts(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        mask = torch.stack([torch.arange(5) < num for num, _ in zip(lengths, x, strict=False)])
        return super().forward(x) * mask[..., None]


class Graph(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return super().forward(x).index_add(0, edges[0], x[edges[1]])


class Matches(nn.Linear):  # type: ignore[misc]
    """Every image with every text."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return super().forward(x) @ super().forward(y).T


class Zeros(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (super().forward(x) - super().forward(x).mean(0)) * 0


class Minus(nn.Linear):  # type: ignore[misc]
    """A row of it is no number, so that nothing can be compared."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y.masked_fill(y > 0, float("-inf"))


class Draws(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return y + torch.randn_like(y)


class ChangesItsBatch(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.mul_(2))


class ReturnsACache(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), models.Cache()


class ReturnsANumber(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        return y, y.norm().item()


IDS, ROWS, LENGTHS = torch.randint(20, (8, 6)), torch.randn(8, 5, 8), [5, 5, 3, 4, 5, 2, 1, 3]
ALIKE = "the outputs of the samples are too much alike"
DEPENDS = "depends on the others in its batch"


@pytest.mark.parametrize(
    ("model", "given", "reason"),
    [
        (OwnLoss(), (IDS,), "returns its own loss, which cannot be reweighed"),
        (OwnLossInTraining(), (IDS,), "returns its own loss, which cannot be reweighed"),
        (SharesInTraining(), (IDS,), DEPENDS),
        (Contrasts(), (IDS,), DEPENDS),
        (NormalizesInTraining(), (IDS,), DEPENDS),
        (KeepsStatistics(), (IDS,), "KeepsStatistics.stored would see the statistics of parts"),
        (models.Model(models.OwnBatchNorm), (ROWS,), "OwnBatchNorm.stored_mean would see"),
        (models.UNet(), (torch.randn(8, 3, 8, 8),), "BatchNorm2d would see the statistics of parts"),
        (models.Model(models.SkipsByPython), (ROWS,), "not torch's"),
        (Tags(), (torch.randint(20, (7,)),), DEPENDS),
        (Gates(), (torch.randint(20, (7,)),), DEPENDS),
        (AttendsOverTime(), (IDS, torch.zeros(8, 8)), DEPENDS),
        (Recurrent(), (ROWS, (torch.zeros(2, 8, 8), torch.zeros(2, 8, 8))), "cannot be called with parts"),
        (Packs(), (ROWS, LENGTHS), "a list with an entry for each sample"),
        (Packs(), (ROWS, torch.tensor(LENGTHS)), DEPENDS),
        (Cuts(8, 8), (ROWS, LENGTHS), "a list with an entry for each sample"),
        (Graph(8, 8), (ROWS[:, 0], torch.tensor([[0, 1, 7, 6, 2], [7, 5, 2, 1, 0]])), DEPENDS),
        (Matches(8, 8), (ROWS[:, 0], ROWS[:, 1]), DEPENDS),
        (ChangesItsBatch(8, 8), (ROWS.clone(),), "changes its inputs in place"),
        (ReturnsACache(8, 8), (ROWS,), "returns a Cache"),
        (ReturnsANumber(8, 8), (ROWS,), "returns values that differ"),
        (nn.Linear(8, 8), (torch.ones(8, 8),), "the samples of the batch are all the same"),
        (Draws(8, 8), (ROWS,), "draws random numbers in evaluation"),
        (Zeros(8, 8), (ROWS,), ALIKE),
        (Minus(8, 8), (ROWS,), "is not finite"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_model_that_may_not_be_split_goes_on_as_it_is(
    model: nn.Module, given: tuple[Any, ...], reason: str
) -> None:
    plain = copy.deepcopy(model)
    activation = MicroBatches(4)
    activate(activation, model)
    for _ in range(3):
        outputs = []
        for each in (plain, model):
            torch.manual_seed(0)
            random.seed(0)
            outputs.append(tensors_in(each(*copy.deepcopy(given))))
        for one, other in zip(*outputs, strict=True):
            assert torch.equal(one, other)
            assert one.grad_fn is not None
            assert other.grad_fn is not None
    for one, other in zip(plain.buffers(), model.buffers(), strict=True):
        assert torch.equal(one, other)
    on, evidence = activation.effect()
    assert not on
    assert evidence.startswith("left alone: ")
    assert reason in evidence


class Experts(nn.Module):  # type: ignore[misc]
    """Rows of all samples are computed together, those of an expert in one product."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 3), nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.flatten(0, 1)
        chosen, y = self.gate(rows).argmax(-1), torch.zeros_like(rows)
        for at, expert in enumerate(self.experts):
            own = (chosen == at).nonzero().squeeze(1)
            y = y.index_add(0, own, expert(rows[own]).to(y.dtype))
        return y.view_as(x)


class Denoises(nn.Linear):  # type: ignore[misc]
    def forward(self, x: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        return super().forward(x * times.float().div(1000).cos()[:, None, None])


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize(
    ("model", "given"),
    [
        (Words(), (IDS,)),
        (Experts(), (ROWS,)),
        (Denoises(8, 8), (ROWS, torch.randint(1000, (8,)))),
        (nn.Sequential(nn.Conv1d(5, 8, 3), nn.GroupNorm(2, 8), nn.Flatten(), nn.Linear(48, 3)), (ROWS,)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_samples_that_do_not_see_each_other_are_computed_in_parts(
    model: nn.Module, given: tuple[Any, ...], dtype: torch.dtype | None
) -> None:
    plain, model = copy.deepcopy(model), copy.deepcopy(model)
    activation = MicroBatches(2)
    activate(activation, model)
    for each in (plain, model):
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss = each(*given).float().square().mean()
        loss.backward()
    assert activation.effect()[0], activation.effect()[1]
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        tolerance = 1e-5 if dtype is None else 0.02
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, rtol=tolerance, atol=tolerance / 10)


class FailsLater(nn.Linear):  # type: ignore[misc]
    """It cannot do with fewer than two samples, which only a short batch has in its parts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert len(x) > 1
        return functional.dropout(super().forward(x), training=self.training)


def test_what_fails_in_a_later_batch_is_computed_from_the_whole_with_the_same_random_numbers() -> None:
    plain = FailsLater(8, 8)
    model = copy.deepcopy(plain)
    activation = MicroBatches(2)
    activate(activation, model)
    model(ROWS).sum().backward()
    outputs = []
    for each in (plain, model):
        torch.manual_seed(0)
        outputs.append(each(ROWS[:3]))
    assert torch.equal(*outputs)
    assert "left alone: it cannot be called with parts of a batch (AssertionError" in activation.effect()[1]


def test_each_root_is_looked_at() -> None:
    """As in a pair of networks that train each other: the one that compares samples is left alone."""
    activation = MicroBatches(2)
    first, second = Words(), Contrasts()
    activate(activation, first)
    activate(activation, second)
    whole = Contrasts()
    whole.load_state_dict(second.state_dict())
    for _ in range(2):
        first(IDS).sum().backward()
        assert torch.equal(second(IDS), whole(IDS))
    on, evidence = activation.effect()
    assert on
    assert "2 batches in 4 parts" in evidence
    assert DEPENDS in evidence


def test_a_last_layer_of_zeros_is_looked_at_again() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    nn.init.zeros_(model[1].weight)
    nn.init.zeros_(model[1].bias)
    activation = MicroBatches(2)
    activate(activation, model)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    for _ in range(3):
        functional.mse_loss(model(ROWS), ROWS).backward()
        optimizer.step()
    assert activation.effect() == (True, "2 batches in 4 parts, 4 recomputed in the backward")


def test_which_tensors_have_rows_is_kept_from_the_first_batch() -> None:
    """Later on there are as many samples as words."""
    plain = Words()
    model = copy.deepcopy(plain)
    activation = MicroBatches(2)
    activate(activation, model)
    mask = torch.rand(6, 8)
    for size in (8, 6):
        torch.testing.assert_close(plain(IDS[:size], mask=mask), model(IDS[:size], mask=mask))
    model(IDS, mask=mask).sum().backward()
    assert activation.effect()[0]


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


def test_the_first_batch_leaves_random_numbers_modes_and_buffers_as_they_are() -> None:
    """The parts of the batch draw what a loop over the parts would draw."""
    plain = models.Model()
    model = copy.deepcopy(plain)
    model.layers[0].eval()
    activate(MicroBatches(2), model)
    buffers = list(model.buffers())
    states = []
    for each in (plain, model):
        torch.manual_seed(0)
        _ = [each(part) for part in ROWS.chunk(2)] if each is plain else each(ROWS)
        states.append(torch.get_rng_state())
    plain.layers[0].eval()
    assert [part.training for part in plain.modules()] == [part.training for part in model.modules()]
    assert all(one is other for one, other in zip(buffers, model.buffers(), strict=True))


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
