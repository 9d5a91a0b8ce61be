"""Two traces compared by call tree."""

from pathlib import Path
from typing import Any

import pytest

from hotloop.trace.compare.diff import diff_traces
from hotloop.trace.read.reader import read_trace
from tests.trace.example import host, kernel
from tests.trace.reading import read_events


def _model(*, layers: dict[str, float], dtype: str = "float", wrapped: bool = False) -> list[dict[str, Any]]:
    """Modules that each run one matmul of a given length."""
    events: list[dict[str, Any]] = [host("user_annotation", "ProfilerStep#1", 0, 1000)]
    at = 10.0
    for number, (name, length) in enumerate(layers.items(), start=1):
        events.append(host("python_function", f"nn.Module: {name}", at, at + 50))
        if wrapped:
            events.append(host("cpu_op", "aten::linear", at + 1, at + 49))
        events.append(
            host(
                "cpu_op",
                "aten::mm",
                at + 5,
                at + 45,
                **{"Input Dims": [[8, 8], [8, 8]], "Input type": [dtype] * 2},
            )
        )
        events.append(host("cuda_runtime", "cudaLaunchKernel", at + 10, at + 20, correlation=number))
        events.append(kernel("gemm", at + 200, at + 200 + length, number))
        at += 100
    return events


def test_the_same_operator_in_two_modules_is_two_places() -> None:
    before = read_events(_model(layers={"Linear_0": 30, "Linear_1": 30}))
    after = read_events(_model(layers={"Linear_0": 30, "Linear_1": 50}))
    diff = diff_traces(before, after)
    (change,) = diff.operators
    assert change.path == ("nn.Module: Linear_1", "aten::mm")
    assert (change.device_before_us, change.device_after_us, change.delta_us) == (30.0, 50.0, 20.0)
    assert [module.path for module in diff.modules] == [("nn.Module: Linear_1",)]
    assert diff.per_step


def test_a_layer_around_an_operator_does_not_hide_it() -> None:
    before = read_events(_model(layers={"Linear_0": 30}))
    after = read_events(_model(layers={"Linear_0": 20}, wrapped=True))
    changes = {change.path[-1]: change for change in diff_traces(before, after).operators}
    assert changes["aten::mm"].status == "changed"
    assert changes["aten::mm"].delta_us == -10.0
    assert "aten::linear" not in changes or changes["aten::linear"].status == "added"


def test_removed_and_added_places() -> None:
    diff = diff_traces(
        read_events(_model(layers={"Linear_0": 30, "Conv_0": 10})),
        read_events(_model(layers={"Linear_0": 30, "Norm_0": 5})),
    )
    assert {(change.path[0], change.status) for change in diff.operators} == {
        ("nn.Module: Conv_0", "removed"),
        ("nn.Module: Norm_0", "added"),
    }


def test_operators_that_got_slower_in_half_precision() -> None:
    diff = diff_traces(
        read_events(_model(layers={"A_0": 30, "B_0": 30})),
        read_events(_model(layers={"A_0": 15, "B_0": 40}, dtype="c10::BFloat16")),
    )
    assert [change.path[0] for change in diff.slower_in_half] == ["nn.Module: B_0"]


def test_a_trace_against_itself_has_no_changes(small_trace: Path) -> None:
    diff = diff_traces(read_trace(small_trace), read_trace(small_trace))
    assert diff.operators == ()
    assert diff.modules == ()
    assert diff.device_before == diff.device_after


def test_workers_take_the_data_wait_away(shared: Path) -> None:
    diff = diff_traces(*(read_trace(shared / f"resnet50_workers{n}_v100.json.gz") for n in (0, 4)))
    assert diff.step_before_us is not None
    assert diff.step_after_us is not None
    assert diff.step_after_us < 0.8 * diff.step_before_us
    assert diff.idle_causes_after["data_us"] < 0.02 * diff.idle_causes_before["data_us"]
    assert diff.device_after is not None
    assert diff.device_after.idle_us == pytest.approx(187137.0)
