"""slow_in_half: autocast, with the modules left out that are slower in half precision."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch import nn

from hotloop.optimize.catalogue.precision.autocast_bf16 import AutocastBf16
from hotloop.optimize.catalogue.precision.slow_in_half import activation as slow_modules
from hotloop.optimize.catalogue.precision.slow_in_half.row import SlowInHalf
from hotloop.optimize.optimization import DoesNotApply
from hotloop.optimize.reduced_precision import half_runs

from .harness import activate, observation, root

MACHINE = {"num_cores": 2, "isa": ["avx512_bf16"]}


class SlowNorm(nn.LayerNorm):  # type: ignore[misc]
    """A normalization without a kernel for half precision: ten times as long in it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.is_autocast_enabled("cpu"):
            time.sleep(0.002)
        return super().forward(x)


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(64, 256), SlowNorm(256)
        self.drop, self.batch, self.last = nn.Dropout(0.5), nn.BatchNorm1d(256), nn.Linear(256, 4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.batch(self.drop(self.relu(self.norm(self.first(x))))))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, float]]:
    """What was timed; the machine's own noise decides nothing in a test: only the slow one is slower."""
    times: dict[str, tuple[float, float]] = {}

    def timed(module: Any, *given: Any) -> tuple[float, float]:
        times[type(module).__name__] = half_runs.both_times(module, *given)
        return (2e-3 if isinstance(module, SlowNorm) else 1e-3), 1e-3

    monkeypatch.setattr(slow_modules, "both_times", timed)
    return times


def test_a_module_that_is_slower_in_half_runs_in_full_precision(seen: dict[str, tuple[float, float]]) -> None:
    """All others run under autocast, and what is saved with the model is the model."""
    model, activation = Net(), SlowInHalf().activation({})
    activate(activation, model)
    dtypes: dict[str, torch.dtype] = {}
    for name, part in model.named_children():
        part.register_forward_hook(lambda _, __, out, name=name: dtypes.update({name: out.dtype}))
    for _ in range(3):
        model(torch.randn(32, 64)).square().mean().backward()
    assert set(seen) == {"Linear", "SlowNorm", "Dropout", "BatchNorm1d", "ReLU"}
    assert dtypes["first"] is torch.bfloat16
    assert dtypes["norm"] is torch.float32
    assert dtypes["last"] is torch.bfloat16
    on, evidence = activation.effect()
    assert on
    assert "kept out: 1 SlowNorm of 6 modules" in evidence
    kept = io.BytesIO()
    for part in model.children():
        part._forward_hooks.clear()
    del model.__dict__["_compiled_call_impl"]
    torch.save(model, kept)
    kept.seek(0)
    again = torch.load(kept, weights_only=False)
    assert all(
        "_compiled_call_impl" not in vars(part) or part._compiled_call_impl is None
        for part in again.modules()
    )


def test_timing_leaves_everything_as_it_was(seen: dict[str, tuple[float, float]]) -> None:
    """Running averages, gradients and the program's random numbers."""
    torch.manual_seed(0)
    plain, model = Net(), Net()
    model.load_state_dict(plain.state_dict())
    activate(SlowInHalf().activation({}), model)
    batch = torch.randn(32, 64)
    torch.manual_seed(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain(batch)
    after = torch.rand(3)
    torch.manual_seed(1)
    model(batch)
    assert torch.equal(torch.rand(3), after)
    assert all(one.grad is None for one in model.parameters())
    torch.testing.assert_close(model.batch.running_mean, plain.batch.running_mean)
    assert model.batch.num_batches_tracked == 1


def test_a_recomputed_forward_is_the_one_that_ran(seen: dict[str, tuple[float, float]]) -> None:
    """What is kept out is so from the next forward on."""

    class Recomputed(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.utils.checkpoint.checkpoint(super().forward, x, use_reentrant=False)

    model, activation = Recomputed(), SlowInHalf().activation({})
    activate(activation, model)
    for _ in range(3):
        model(torch.randn(32, 64, requires_grad=True)).square().mean().backward()
    assert activation.effect()[0], activation.effect()


def test_where_nothing_is_slower_there_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial says so, and autocast alone is the better name for it."""
    monkeypatch.setattr(slow_modules, "both_times", lambda *_: (1.0, 1.0))
    model, activation = Net(), SlowInHalf().activation({})
    activate(activation, model)
    model(torch.randn(32, 64)).mean().backward()
    assert activation.effect() == (False, "none of 6 modules was slower in bfloat16")


def test_a_module_that_cannot_be_run_by_itself_stays_under_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that asserts an order of calls."""

    def cannot(*_: Any) -> tuple[float, float]:
        raise RuntimeError("called twice")

    monkeypatch.setattr(slow_modules, "both_times", cannot)
    model, activation = Net(), SlowInHalf().activation({})
    activate(activation, model)
    assert model(torch.randn(32, 64)).isfinite().all()
    assert not activation.effect()[0]


@pytest.mark.parametrize(
    ("facts", "machine", "reason"),
    [
        ({"roots": (root(layer_counts={"Linear": 3, "ReLU": 2}),)}, MACHINE, "are not slower in half"),
        (
            {"roots": (root(layer_counts={"Linear": 3, "LayerNorm": 2}),)},
            {"isa": ["avx2"]},
            "no bfloat16 units",
        ),
        ({"autocast_dtype": "bfloat16"}, MACHINE, "already"),
    ],
)
def test_where_it_does_not_apply(facts: dict[str, Any], machine: dict[str, Any], reason: str) -> None:
    """Each is told its own reason."""
    with pytest.raises(DoesNotApply, match=reason):
        SlowInHalf().candidates(observation(machine=machine, **facts))


def test_it_comes_after_autocast_alone() -> None:
    """The simpler one is tried first, and this one in its place."""
    seen = observation(machine=MACHINE, roots=(root(layer_counts={"Conv2d": 3, "GroupNorm": 2}),))
    (one,), (plain,) = SlowInHalf().candidates(seen), AutocastBf16().candidates(seen)
    assert 1 < one.prior < plain.prior
    assert "autocast_bf16" in SlowInHalf.conflicts
