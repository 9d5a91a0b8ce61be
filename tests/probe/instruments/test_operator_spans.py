"""Lanes from events of a profiler: threads of operators, and streams of a device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hotloop.probe.instruments import operator_spans as spans
from hotloop.probe.instruments.operator_spans import device_busy_us, operator_spans

MS = 1_000_000


def _event(
    name: str,
    begin_us: float,
    spent_us: float,
    *,
    device: str = "CPU",
    track: int = 1,
    inside: Any = None,
    **more: Any,
) -> Any:
    return SimpleNamespace(
        name=name,
        device_type=SimpleNamespace(name=device),
        time_range=SimpleNamespace(start=begin_us, end=begin_us + spent_us),
        thread=track,
        device_resource_id=track,
        cpu_parent=inside,
        **{"device_index": 0, "is_user_annotation": False, **more},
    )


def test_kernels_have_a_lane_for_each_stream_and_what_is_no_operator_has_none() -> None:
    outer = _event("aten::linear", 1000, 50)
    events = [
        outer,
        _event("aten::addmm", 1010, 30, inside=outer),
        _event("cudaLaunchKernel", 1012, 5, inside=outer),
        _event("autograd::engine::evaluate_function: AddmmBackward0", 1100, 50, track=2),
        _event("sgemm", 1020, 40, device="CUDA", track=7),
        _event("ncclDevKernel", 1030, 40, device="CUDA", track=20),
        _event("aten::mul", 5000, 10),  # after the last step
    ]
    seen = operator_spans(events, 0, [0, 2 * MS])
    assert seen["lanes"] == [("operators", 1), ("operators", 2), ("device", 7), ("device", 20)]
    assert seen["num"] == 5
    depths = {seen["names"][name]: depth for _, name, _, _, depth in seen["spans"]}
    assert depths["aten::linear"] == 0
    assert depths["aten::addmm"] == 1
    assert "cudaLaunchKernel" not in depths


def test_of_many_the_longest_are_kept_in_order(monkeypatch: Any) -> None:
    monkeypatch.setattr(spans, "MAX_SPANS", 2)
    events = [_event(f"aten::op{at}", 10.0 * at, 1.0 + at % 3) for at in range(6)]
    seen = operator_spans(events, 0, [0, MS])
    assert [seen["names"][span[1]] for span in seen["spans"]] == ["aten::op2", "aten::op5"]
    assert seen["num"] == 6


def test_of_a_long_window_the_last_two_steps_are_drawn() -> None:
    events = [_event("aten::add", 1000.0 * at + 500, 10) for at in range(5)]
    seen = operator_spans(events, 0, [at * MS for at in range(6)])
    assert [span[2] for span in seen["spans"]] == [MS // 2, 3 * MS // 2]
    assert (seen["begin_ns"], seen["end_ns"]) == (3 * MS, 5 * MS)


def test_a_device_is_busy_with_work_and_not_with_the_marks_around_it() -> None:
    """Kernels of two streams and of a graph that no operator launched; the optimizer's mark is no work."""
    events = [
        _event("aten::mm", 0, 500),
        _event("sgemm", 100, 40, device="CUDA", track=7),
        _event("ncclDevKernel", 120, 40, device="CUDA", track=20),
        _event("fused_adam", 300, 20, device="CUDA", track=7),
        _event("Optimizer.step#AdamW.step", 90, 900, device="CUDA", track=7, is_user_annotation=True),
    ]
    assert device_busy_us(events) == 80
    seen = operator_spans(events, 0, [0, MS])
    assert "Optimizer.step#AdamW.step" not in seen["names"]


def test_of_several_devices_the_busiest_counts() -> None:
    """Two halves of a model that take turns: either device idles while the other works."""
    events = [_event("sgemm", 100 * at, 100, device="CUDA", track=7, device_index=at % 2) for at in range(9)]
    assert device_busy_us(events) == 500
    assert device_busy_us([_event("aten::mm", 0, 500)]) is None
