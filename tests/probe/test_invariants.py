"""What the first steps of a training do, as the probe sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

from hotloop.model.learned import TrainingInvariants
from hotloop.probe.process.config import ProbeConfig
from hotloop.probe.record.invariants import MAX_FORWARDS, MAX_STEPS, Invariants
from hotloop.tune.verdict.held_invariants import broken

from .conftest import RunProgram

_PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.randn(5, 32, 8)
for step in range(40):
    optimizer.zero_grad()
    model(batches[step % 5]).square().mean().backward()
    optimizer.step()
from torch.optim.optimizer import _global_optimizer_pre_hooks as hooks
print(len(hooks))
"""


class Net(nn.Module):
    """Norm and dropout between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 16), nn.BatchNorm1d(16)
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(16, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.drop(self.norm(self.first(batch)).relu())
        output: torch.Tensor = self.last(hidden)
        return output


def trained(
    alter: Callable[[Net], None] = lambda net: None,
    batch: Callable[[int], torch.Tensor] = lambda step: torch.full((8, 4), float(step)) + torch.arange(4),
    after_backward: Callable[[Net], None] = lambda net: None,
    after_step: Callable[[Net], None] = lambda net: None,
    rate: float = 0.05,
    *,
    zeroes: bool = True,
) -> TrainingInvariants:
    """What is seen of a training, altered in one way."""
    torch.manual_seed(0)
    net, invariants = Net(), Invariants()
    alter(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for step in range(MAX_FORWARDS):
        if zeroes:
            optimizer.zero_grad()
        given = batch(step)
        generators = invariants.before(net, (given,), {})
        loss = net(given).square().mean()
        invariants.after(net, generators)
        if not invariants.enough_steps:
            invariants.backward()
        loss.backward()
        after_backward(net)
        if not invariants.enough_steps:
            invariants.step(optimizer)
        optimizer.step()
        with torch.no_grad():
            after_step(net)
    assert invariants.enough_forwards
    del optimizer  # what a function made is gone when its program ends
    return msgspec.convert(invariants.seen(), TrainingInvariants)


@pytest.fixture(scope="module")
def usual() -> TrainingInvariants:
    """Of a training as it should be."""
    return trained()


def _rounded(net: Net) -> None:
    for parameter in net.parameters():
        parameter.copy_(parameter.bfloat16())


def _underflowed(net: Net) -> None:
    for parameter in net.parameters():
        assert parameter.grad is not None
        parameter.grad.copy_((parameter.grad * 1e-7).half().float())


def _frozen(net: Net) -> None:
    net.first.weight.grad = None


def test_a_usual_training(usual: TrainingInvariants) -> None:
    assert (usual.num_forwards, usual.num_random, usual.distinct) == (MAX_FORWARDS, MAX_FORWARDS, 1.0)
    assert usual.num_moving == usual.num_buffers == 2, "the count of batches is no floating-point number"
    assert usual.coarse_weights is not None
    assert usual.coarse_weights < 0.3, "the norm starts at 1 and 0"
    assert usual.zero_gradients is not None


def _without_bias(net: Net) -> None:
    for bias in (net.norm.bias, net.last.bias):
        bias.grad = None


def test_parameters_that_stand_still(usual: TrainingInvariants) -> None:
    assert (usual.num_parameters, usual.num_still) == (6, 1), "the first bias: all rows of a batch are one"
    frozen = trained(after_backward=_without_bias)
    assert (frozen.num_parameters, frozen.num_still) == (6, 3)
    assert broken([usual], frozen) == "50% of the parameters do not move, 17% in the original"


def test_gradients_that_are_carried_over_a_step(usual: TrainingInvariants) -> None:
    assert (usual.num_begun, usual.num_carried) == (MAX_STEPS - 1, 0)
    carried = trained(zeroes=False)
    assert (carried.num_begun, carried.num_carried) == (MAX_STEPS - 1, MAX_STEPS - 1)
    assert "add to gradients of the step before" in (broken([usual], carried) or "")


def test_repeated_batches() -> None:
    assert (
        trained(batch=lambda step: torch.full((8, 4), step % 8.0) + torch.arange(4)).distinct
        == 8 / MAX_FORWARDS
    )


def test_the_layout_in_memory_makes_no_other_batch() -> None:
    def turned(step: int) -> torch.Tensor:
        rows = torch.full((8, 4), step // 2.0) + torch.arange(4)
        return rows if step % 2 else rows.t().contiguous().t()

    assert trained(batch=turned).distinct == 0.5


def test_dropout_and_statistics_that_are_off() -> None:
    seen = trained(lambda net: [module.eval() for module in (net.drop, net.norm)] and None)
    assert (seen.num_random, seen.num_moving) == (0, 0)


def test_weights_without_their_precision() -> None:
    assert trained(after_step=_rounded).coarse_weights == 1.0


def test_weights_without_their_precision_before_which_there_was_no_step() -> None:
    """Of an episode, say: a policy is called many times before its optimizer."""
    torch.manual_seed(0)
    net, invariants = nn.Linear(4, 16), Invariants()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for call in range(36):
        generators = invariants.before(net, (torch.randn(8, 4),), {})
        net(torch.randn(8, 4)).square().mean().backward()
        invariants.after(net, generators)
        if call % 12 == 11:
            invariants.step(optimizer)
            optimizer.step()
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter.copy_(parameter.bfloat16())
    seen = msgspec.convert(invariants.seen(), TrainingInvariants)
    assert seen.coarse_weights == 1.0


def test_updates_have_a_length_and_a_direction(usual: TrainingInvariants) -> None:
    def twice(net: Net) -> None:
        for parameter in net.parameters():
            assert parameter.grad is not None
            parameter.grad.mul_(2)

    def turned(net: Net) -> None:
        for parameter in net.parameters():
            assert parameter.grad is not None
            parameter.grad.copy_(torch.randn_like(parameter))

    slow, faster = trained(rate=1e-4), trained(rate=1e-4, after_backward=twice)
    assert slow.update_size is not None
    assert faster.update_size == pytest.approx(2 * slow.update_size, rel=0.1)
    assert usual.update_turn is not None
    assert usual.update_turn > 0.5
    assert trained(after_backward=turned).update_turn == pytest.approx(0.0, abs=0.15)


def test_gradients_that_vanish_or_are_missing(usual: TrainingInvariants) -> None:
    assert usual.zero_gradients is not None
    underflowed = trained(after_backward=_underflowed).zero_gradients
    assert underflowed is not None
    assert underflowed > usual.zero_gradients + 0.1
    frozen = trained(after_backward=_frozen).zero_gradients
    num_first, num_all = 64, sum(parameter.numel() for parameter in Net().parameters())
    assert frozen is not None
    assert frozen >= num_first / num_all


def test_a_real_program_is_looked_at_for_its_first_steps(run_probed: RunProgram, tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    done = run_probed(_PROGRAM, ProbeConfig(folder=str(folder), losses=True, seed=1, program_seeds=()))
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("process-*.json")
    facts = json.loads(path.read_text())
    assert facts["notes"] == []
    seen = msgspec.convert(facts["invariants"], TrainingInvariants)
    assert (seen.num_forwards, len(set(seen.batches)), seen.num_random) == (MAX_FORWARDS, 5, MAX_FORWARDS)
    assert seen.num_moving == 2
    assert seen.zero_gradients is not None
    assert MAX_STEPS < 40
    assert done.stdout.strip() == "1", "the hook that looks at gradients has left"


def test_what_is_not_asked_for_is_not_looked_at(run_probed: RunProgram, tmp_path: Path) -> None:
    done = run_probed(_PROGRAM, ProbeConfig(folder=str(tmp_path / "probe")))
    (path,) = (tmp_path / "probe").glob("process-*.json")
    assert json.loads(path.read_text())["invariants"] is None
    assert done.stdout.strip() == "1"
