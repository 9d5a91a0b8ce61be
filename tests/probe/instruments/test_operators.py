"""The operators of steps whose operators are known."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn

from hotloop.probe.instruments.instrument import Unavailable
from hotloop.probe.instruments.operators import Operators
from hotloop.probe.probe import Probe
from hotloop.probe.process.config import ProbeConfig


def _instrument() -> Operators:
    gc.collect()
    return Operators(Probe(ProbeConfig(folder=None)))


def _rows(value: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in value["rows"]}


def test_operators_with_their_shapes_and_products() -> None:
    model, x = nn.Linear(64, 128), torch.rand(32, 64)
    operators = _instrument()
    operators.start()
    for _ in range(3):
        model(x).relu()
    value = operators.stop()
    addmm = _rows(value)["aten::addmm"]
    assert addmm["count"] == 3
    assert [32, 64] in addmm["shapes"]
    assert addmm["self_us"] > 0
    assert value["num"] == 6, "linear and relu, whatever is inside them"
    assert [product[2] for row in value["rows"] for product in row["products"]] == [3]
    assert value["self_us"] == pytest.approx(sum(row["self_us"] for row in value["rows"]))
    assert value["device_us"] is None


def test_a_convolutions_flops_are_where_its_time_is() -> None:
    model, x = nn.Conv2d(8, 16, 3), torch.rand(4, 8, 32, 32)
    operators = _instrument()
    operators.start()
    model(x)
    (row,) = [row for row in operators.stop()["rows"] if row["products"]]
    assert row["products"][0][0] == "aten::convolution"
    assert row["name"] != "aten::conv2d"


def test_a_program_that_is_profiling_is_left_alone() -> None:
    with torch.profiler.profile() as own:
        with pytest.raises(Unavailable, match="itself"):
            _instrument().start()
        torch.rand(3).sum()
    assert any(event.key == "aten::sum" for event in own.key_averages())
    del own


def test_a_program_with_a_profiler_that_waits_is_left_alone() -> None:
    own = torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=1, active=1))
    with pytest.raises(Unavailable, match="itself"):
        _instrument().start()
    del own


def test_it_gives_way_to_a_profiler_that_the_program_starts() -> None:
    operators = _instrument()
    operators.start()
    with torch.profiler.profile() as own:
        torch.rand(3).sum()
    assert any(event.key == "aten::sum" for event in own.key_averages())
    with pytest.raises(Unavailable, match="meanwhile"):
        operators.stop()
    del own


def test_nothing_is_left_behind() -> None:
    starter = torch.autograd.profiler._enable_profiler
    operators = _instrument()
    operators.start()
    operators.stop()
    assert torch.autograd.profiler._enable_profiler is starter
    assert not torch._C._autograd._profiler_enabled()


def test_when_operators_ran_is_on_the_clock_of_the_steps() -> None:
    model, x = nn.Linear(64, 128), torch.rand(32, 64)
    operators = _instrument()
    operators.start()
    for _ in range(3):
        model(x).relu()
        operators.step()
    seen = operators.stop()["spans"]
    window_ns = seen["end_ns"] - seen["begin_ns"]
    names = [seen["names"][span[1]] for span in seen["spans"]]
    assert seen["lanes"] == [("operators", 1)]
    assert names.count("aten::linear") == 2, "of the last two steps"
    assert all(0 <= begin < window_ns for _, _, begin, _, _ in seen["spans"])
    linear, addmm = (seen["spans"][names.index(name)] for name in ("aten::linear", "aten::addmm"))
    assert linear[4] == 0
    assert addmm[4] == 1, "inside the linear"
    assert seen["num"] == len(seen["spans"])
