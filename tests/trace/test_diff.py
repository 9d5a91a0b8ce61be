"""Two traces compared by call tree."""

from pathlib import Path
from typing import Any

import pytest

from hotloop.report.sections.trace.diff import differences
from hotloop.report.terminal.walk import render_blocks
from hotloop.trace.compare.diff import diff_traces
from hotloop.trace.read.reader import read_trace
from tests.report.results import shown
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


def test_without_a_device_host_times_are_compared() -> None:
    """A program on the CPU: its operators take time, too."""
    before, after = (
        [host("cpu_op", "aten::mm", 0, 100), host("cpu_op", "aten::relu", 200, 200 + relu)]
        for relu in (50, 20)
    )
    diff = diff_traces(read_events(before), read_events(after))
    (change,) = diff.operators
    assert (change.path, change.is_host, change.before_us, change.after_us) == (
        ("aten::relu",),
        True,
        50.0,
        20.0,
    )
    screen = shown(render_blocks(list(differences(diff, 10))))
    assert "aten::relu   0.050  0.020  -60.0%      1" in screen


def test_totals_are_of_a_step_where_both_traces_have_steps() -> None:
    """Two steps of 100 us on the device against one: a step is as long, not half."""
    one, two = (
        [
            event
            for step in range(num)
            for event in (
                host("user_annotation", f"ProfilerStep#{step}", 200 * step, 200 * step + 20),
                host("cpu_op", "aten::mm", 200 * step, 200 * step + 10),
                host(
                    "cuda_runtime", "cudaLaunchKernel", 200 * step + 2, 200 * step + 4, correlation=step + 1
                ),
                kernel("gemm", 200 * step + 10, 200 * step + 110, step + 1),
            )
        ]
        for num in (1, 2)
    )
    diff = diff_traces(read_events(two), read_events(one))
    assert (diff.step_before_us, diff.step_after_us) == (100.0, 100.0), (
        "the host ran ahead: the device takes 100 us"
    )
    screen = shown(render_blocks(list(differences(diff, 10))))
    assert "device busy          0.10      0.10   +0.0%" in screen


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
