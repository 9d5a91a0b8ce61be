"""A model alone on batches of other sizes: what is tried, what ends it, what is read from it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch
from torch import nn

from hotloop.model.inference import Inference, Latency
from hotloop.whatif import batch_sizes, orders, read
from hotloop.whatif.batch_sizes import BatchSizes
from hotloop.whatif.run import Outcome, Report

from ..diagnose.observations import FINE
from ..optimize.harness import activate


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sizes, "CALLS_S", 0.0)
    monkeypatch.setattr(batch_sizes, "LARGEST", 16)
    monkeypatch.setattr(batch_sizes, "GROWS", 0.0)  # whatever the clock says, no doubling counts as flat


class Counting(nn.Module):
    """Says how many rows each call was given."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.rows: list[int] = []

    def forward(self, x: torch.Tensor, *, mask: torch.Tensor | None = None) -> torch.Tensor:
        assert mask is None or len(mask) == len(x)
        self.rows.append(len(x))
        return self.layer(x)


def _tried(model: nn.Module, *args: Any, **kwargs: Any) -> dict[str, Any]:
    bench = BatchSizes(60.0)
    activate(bench, model)
    model(*args, **kwargs)
    return bench.run()


def test_sizes_around_the_program_s_own_are_called_with_its_rows() -> None:
    model = Counting()
    told = _tried(model, torch.randn(3, 3), mask=torch.ones(3))
    assert told["now"] == 3
    assert told["missing"] == ""
    assert [int(size) for size in told["times"]] == [1, 2, 3, 6, 12]
    assert all(len(times) == batch_sizes.MIN_CALLS for times in told["times"].values())
    assert list(dict.fromkeys(model.rows)) == [3, 1, 2, 6, 12]


def test_no_gradient_is_left_behind() -> None:
    model = Counting()
    _tried(model, torch.randn(2, 3))
    assert all(parameter.grad is None for parameter in model.parameters())


class OneSize(nn.Module):
    """Works for no other number of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.ones(4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.rows + x.reshape(4, -1)


class Mean(nn.Module):
    """Gives one number for the whole batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).sum(0)


@pytest.mark.parametrize(
    ("model", "why"), [(OneSize(), "8 samples: RuntimeError"), (Mean(), "does not follow the number of rows")]
)
def test_a_model_that_takes_no_other_size_is_said(model: nn.Module, why: str) -> None:
    assert why in _tried(model, torch.randn(4, 3))["missing"]


def test_two_models_are_not_tried() -> None:
    bench, first, second = BatchSizes(60.0), Counting(), Counting()
    for model in (first, second):
        activate(bench, model)
        model(torch.randn(2, 3))
    assert bench.run() == {"missing": "more than one model is called"}


def test_larger_ones_end_where_doubling_brings_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sizes, "GROWS", 1e9)
    told = _tried(Counting(), torch.randn(1, 3))
    assert [int(size) for size in told["times"]] == [1, 2, 4]


def test_memory_ends_it_before_it_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sizes, "allowed_bytes", lambda _: -1)
    assert "MemoryError" in _tried(Counting(), torch.randn(1, 3))["missing"]


def _latency(p50_s: float) -> Latency:
    return Latency(num=9, p50_s=p50_s, low_s=p50_s, high_s=p50_s, p95_s=1.1 * p50_s, p99_s=1.1 * p50_s)


BY_BATCH = {1: _latency(0.010), 4: _latency(0.012), 16: _latency(0.030), 32: _latency(0.059)}
INFERENCE = Inference(requests_per_s=90.0, latency=_latency(0.010), batch=1, by_batch=BY_BATCH)


@pytest.mark.parametrize(("limit_s", "best"), [(None, 16), (0.05, 16), (0.02, 4), (0.0111, 1), (0.001, None)])
def test_the_smallest_size_on_the_plateau_within_the_limit_is_named(
    limit_s: float | None, best: int | None
) -> None:
    assert msgspec.structs.replace(INFERENCE, latency_limit_s=limit_s).best_batch == best


def test_only_programs_that_answer_batch_by_batch_are_tried() -> None:
    answers = msgspec.structs.replace(FINE, inference=INFERENCE)
    generates = msgspec.structs.replace(INFERENCE, between_tokens=_latency(0.01))
    assert [order["name"] for order in orders.batch_orders(answers)] == [orders.BATCHES]
    assert orders.batch_orders(FINE) == []
    assert orders.batch_orders(msgspec.structs.replace(FINE, inference=generates)) == []


def test_latencies_are_read_in_the_order_of_their_sizes() -> None:
    times = {"8": [0.2] * 7, "1": [0.1] * 7}
    report = Report(pid=1, rank=None, benches={orders.BATCHES: {"now": 1, "times": times, "missing": ""}})
    found = read.latencies(Outcome(reports=(report,), gaps=(), seconds=1.0))
    assert {size: one.p50_s for size, one in found.items()} == {1: 0.1, 8: 0.2}
