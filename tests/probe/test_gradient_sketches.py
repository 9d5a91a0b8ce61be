"""What the gradients of the first steps say of a change, from real trainings of a small net."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import torch
from torch import nn

from hotloop.model.learned import TrainingInvariants
from hotloop.probe.record.invariants import MAX_STEPS, Invariants
from hotloop.tune.verdict.first_gradients import num_agreeing, other_gradients

Labels = Callable[[torch.Tensor], torch.Tensor]
Act = Callable[[list[nn.Parameter], int], None]
STALE = 6


def trained(
    labels: Labels = lambda given: given,
    gradients: Act = lambda parameters, step: None,
    *,
    first_batch: int = 0,
    draws: int = 0,
    noise: float = 0.0,
    dropout: float = 0.0,
    state: float = 0.0,
    integers: Labels | None = None,
) -> TrainingInvariants:
    """What is seen of a training, altered in one way."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(dropout), nn.Linear(64, 4))
    data = torch.Generator().manual_seed(1)
    batches, targets = torch.randn(40, 16, 8, generator=data), torch.randint(0, 4, (40, 16), generator=data)
    optimizer, invariants = torch.optim.SGD(net.parameters(), lr=0.05), Invariants()
    parameters = list(net.parameters())
    torch.rand(draws)
    with torch.no_grad():
        for parameter in parameters:
            parameter.mul_(1 + noise * torch.randn_like(parameter))
    for step in range(MAX_STEPS):
        given, target = batches[first_batch + step] * (1 + state), targets[first_batch + step]
        whole = () if integers is None else (integers(target),)
        optimizer.zero_grad()
        generators = invariants.before(net, (given, *whole), {})
        loss = nn.functional.cross_entropy(net(given), labels(target))
        invariants.after(net, generators)
        loss.backward()
        with torch.no_grad():
            gradients(parameters, step)
        invariants.step(optimizer)
        optimizer.step()
    return msgspec.convert(invariants.seen(), TrainingInvariants)


def _rounded(parameters: list[nn.Parameter], _: int) -> None:
    for parameter in parameters:
        assert parameter.grad is not None
        parameter.grad.copy_(parameter.grad.bfloat16())


def _mixed_up(parameters: list[nn.Parameter], _: int) -> None:
    for parameter in parameters:
        assert parameter.grad is not None
        parameter.grad.copy_(parameter.grad.roll(1))


def _late(parameters: list[nn.Parameter], step: int) -> None:
    if step >= STALE:
        _mixed_up(parameters, step)


@pytest.fixture(scope="module")
def usual() -> TrainingInvariants:
    return trained()


def test_a_program_without_an_optimizer_is_looked_at_after_its_backwards() -> None:
    """`p.data.add_(p.grad, alpha=-lr)`, as word_language_model of pytorch/examples does it."""
    net, invariants, given = nn.Linear(8, 4), Invariants(), torch.randn(16, 8)
    looked = 0
    for _ in range(MAX_STEPS + 5):
        generators = invariants.before(net, (given,), {})
        net(given).square().mean().backward()
        invariants.after(net, generators)
        if not invariants.enough_backwards:
            invariants.after_backward()
            looked += 1
    seen = msgspec.convert(invariants.seen(), TrainingInvariants)
    assert looked == MAX_STEPS
    assert [sketch.num_forwards for sketch in seen.gradients] == list(range(1, MAX_STEPS + 1))


def test_gradients_that_are_accumulated_for_an_optimizer_are_no_steps() -> None:
    """Sixteen of them, all of the first weights, would show that an optimizer does the same before it did anything."""
    net, invariants, given = nn.Linear(8, 4), Invariants(), torch.randn(16, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for micro in range(12):
        generators = invariants.before(net, (given,), {})
        net(given).square().mean().backward()
        invariants.after(net, generators)
        if not invariants.enough_backwards:
            invariants.after_backward()
        if micro % 4 == 3:
            invariants.step(optimizer)
    seen = msgspec.convert(invariants.seen(), TrainingInvariants)
    assert [sketch.num_forwards for sketch in seen.gradients] == [4, 8, 12]


def test_there_is_a_sketch_of_every_first_step(usual: TrainingInvariants) -> None:
    assert [sketch.num_forwards for sketch in usual.gradients] == list(range(1, MAX_STEPS + 1))
    assert {sketch.num_values for sketch in usual.gradients} == {8 * 64 + 64 + 64 * 4 + 4}


@pytest.mark.parametrize(
    "change",
    [
        trained,
        lambda: trained(gradients=_rounded),
        lambda: trained(first_batch=20),
        lambda: trained(lambda given: given.roll(1), first_batch=20),
    ],
    ids=["nothing", "rounded", "other batches", "other batches and labels: nothing is known"],
)
def test_the_same_but_for_rounding_passes(
    usual: TrainingInvariants, change: Callable[[], TrainingInvariants]
) -> None:
    assert other_gradients([usual, usual], change(), [trained(noise=2**-9, draws=3)]) is None


@pytest.mark.parametrize(
    "change",
    [lambda: trained(lambda given: given.roll(1)), lambda: trained(gradients=_mixed_up)],
    ids=["labels of the neighbour", "gradients of somebody else"],
)
@pytest.mark.parametrize("num_perturbed", [0, 2])
def test_other_gradients_are_refused_in_words(
    usual: TrainingInvariants, change: Callable[[], TrainingInvariants], num_perturbed: int
) -> None:
    perturbed = [trained(noise=2**-9, draws=3 + number) for number in range(num_perturbed)]
    found = other_gradients([usual, usual], change(), perturbed)
    assert found is not None
    assert found.startswith("the first gradients are not the original's: 1 - cosine 0.")


def test_later_steps_are_judged_where_noise_shows_how_fast_small_differences_grow(
    usual: TrainingInvariants,
) -> None:
    late = trained(gradients=_late)
    assert other_gradients([usual, usual], late) is None
    assert other_gradients([usual, usual], late, [trained(first_batch=20)]) is None, (
        "it was given something else"
    )
    assert other_gradients([usual, usual], late, [trained(noise=2**-9)]) is not None


def test_other_random_draws_are_held_to_what_they_make_of_the_program_itself() -> None:
    drops, again = trained(dropout=0.5), trained(dropout=0.5, draws=5)
    assert other_gradients([drops, drops], again) is None, "no other run shows what draws do"
    assert other_gradients([drops, drops], again, [trained(dropout=0.5, draws=9)]) is None
    wrong = trained(lambda given: given.roll(1), dropout=0.5)
    assert other_gradients([drops, drops], wrong) is None
    few, perturbed = trained(dropout=0.1), [trained(dropout=0.1, draws=9)]
    wrong = trained(lambda given: given.roll(1), dropout=0.1)
    assert other_gradients([few, few], wrong, perturbed) is not None


@pytest.mark.parametrize(
    ("integers", "refused"),
    [(None, False), (torch.zeros_like, False), (torch.clone, True)],
    ids=["none", "the same in every batch", "tokens"],
)
def test_tokens_tell_that_samples_are_the_same_where_a_state_is_rounded(
    integers: Labels | None, refused: bool
) -> None:
    usual, wrong, right = (
        trained(labels, state=state, integers=integers)
        for labels, state in ((torch.clone, 0.0), (lambda given: given.roll(1), 1e-3), (torch.clone, 1e-3))
    )
    perturbed = trained(noise=2**-9, state=-1e-3, integers=integers)
    assert (other_gradients([usual, usual], wrong, [perturbed]) is not None) == refused
    assert other_gradients([usual, usual], right, [perturbed]) is None


@pytest.mark.parametrize(
    ("others", "same"),
    [((0.0, 1e-4), True), ((0.0, 1e-2), False), ((1e-4, 1e-4), False)],
    ids=["half of them made by a model", "another batch", "all of them a little off"],
)
def test_what_one_model_makes_for_another_may_be_rounded(
    usual: TrainingInvariants, others: tuple[float, float], same: bool
) -> None:
    off = tuple(batch * (1 + others[at % 2]) for at, batch in enumerate(usual.batches))
    other = msgspec.structs.replace(usual, batches=off)
    assert (num_agreeing([usual], other) > 1) == same


def test_a_change_is_held_to_the_original_that_it_is_closest_to(usual: TrainingInvariants) -> None:
    other = trained(lambda given: given.roll(1))
    assert other_gradients([usual, other], other) is None


def test_gradients_that_are_no_numbers_say_nothing(usual: TrainingInvariants) -> None:
    def lost(parameters: list[nn.Parameter], _: int) -> None:
        assert parameters[0].grad is not None
        parameters[0].grad.fill_(float("nan"))

    assert other_gradients([usual], trained(gradients=lost)) is None
    assert other_gradients([], usual) is None
    assert other_gradients([msgspec.structs.replace(usual, gradients=())], usual) is None
