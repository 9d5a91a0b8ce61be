"""What holds for every trace: sums, sweeps against brute force, nesting against its definition."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.trace.causes.idle import IdleCauses
from hotloop.trace.facts.intervals import complement, intersect, subtract, union
from hotloop.trace.facts.timeline import DeviceSweep
from hotloop.trace.link.linked_trace import link_trace
from hotloop.trace.link.nesting import nest
from hotloop.trace.read.trace import HostEvents, Trace
from tests.trace.example import host, kernel
from tests.trace.reading import read_events

_SPAN = 60
_interval = st.tuples(st.integers(0, _SPAN), st.integers(0, 15)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
_intervals = st.lists(_interval, max_size=12)


def _covered(intervals: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in intervals for moment in range(start, end)}


def _union(intervals: list[tuple[int, int]]) -> Any:
    array = np.array(intervals, dtype=np.int64).reshape(-1, 2)
    return union(array[:, 0], array[:, 1])


def _moments(found: Any) -> set[int]:
    return _covered(list(zip(found.start.tolist(), found.end.tolist(), strict=True)))


@given(_intervals, _intervals)
def test_set_operations_equal_brute_force(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = _union(a), _union(b)
    assert _moments(left) == _covered(a)
    assert left.total == len(_covered(a))
    assert _moments(intersect(left, right)) == _covered(a) & _covered(b)
    assert _moments(subtract(left, right)) == _covered(a) - _covered(b)
    assert _moments(complement(left, 10, 50)) == set(range(10, 50)) - _covered(a)
    assert np.all(left.start[1:] > left.end[:-1])


@given(_intervals, st.lists(st.integers(-5, _SPAN + 20), max_size=10))
def test_cumulative_coverage_equals_brute_force(a: list[tuple[int, int]], moments: list[int]) -> None:
    before = _union(a).before(np.array(moments, dtype=np.int64))
    assert before.tolist() == [sum(at < moment for at in _covered(a)) for moment in moments]


_KERNELS = ("gemm", "ncclDevKernel_AllReduce", "Memcpy HtoD (Pageable -> Device)", "elementwise")
_CALLS = ("cudaLaunchKernel", "cudaStreamSynchronize", "cudaMemcpyAsync", "cudaMalloc", "cudaEventQuery")
_HOST = (
    ("cpu_op", "aten::mm"),
    ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    ("python_function", "train.py(1): f"),
    ("overhead", "Buffer Flush"),
    *(("cuda_runtime", name) for name in _CALLS),
)


@st.composite
def _traces(draw: st.DrawFn) -> Trace:
    events = []
    for start, end in draw(st.lists(_interval, min_size=1, max_size=10)):
        name = draw(st.sampled_from(_KERNELS))
        category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        events.append(
            kernel(name, start, end, draw(st.integers(0, 8)), stream=draw(st.integers(1, 2)), cat=category)
        )
    for start, end in draw(_intervals):
        category, name = draw(st.sampled_from(_HOST))
        events.append(host(category, name, start, end, correlation=draw(st.integers(0, 8))))
    return read_events(events)


@settings(max_examples=200, deadline=None)
@given(_traces())
def test_busy_and_idle_add_up_and_causes_to_idle(trace: Trace) -> None:
    sweep = DeviceSweep(trace.device)
    times = sweep.times()
    idle, parts = IdleCauses(link_trace(trace)).split(sweep.busy, sweep.low, sweep.high)
    assert idle.total_ns == sweep.high - sweep.low - sweep.busy.total
    assert idle.total_ns == round(times.idle_us * 1000)
    assert round((times.busy_us + times.idle_us) * 1000) == round(times.span_us * 1000)
    assert {cause: part.total for cause, part in parts.items()} == {c: idle.ns[c] for c in parts}
    assert all(ns >= 0 for ns in idle.ns.values())


@settings(max_examples=200, deadline=None)
@given(_traces())
def test_the_sweep_equals_a_brute_force_one(trace: Trace) -> None:
    device = trace.device
    rows = list(zip((device.start // 1000).tolist(), (device.end // 1000).tolist(), strict=True))
    names = [trace.names[index] for index in device.name.tolist()]
    communication = _covered([row for row, name in zip(rows, names, strict=True) if "nccl" in name])
    memory = _covered([row for row, name in zip(rows, names, strict=True) if "Memcpy" in name])
    compute = _covered([r for r, n in zip(rows, names, strict=True) if "nccl" not in n and "Memcpy" not in n])
    times = DeviceSweep(device).times()
    assert times.busy_us == len(communication | memory | compute)
    assert times.compute_us == len(compute)
    assert times.communication_us == len(communication)
    assert times.memory_us == len(memory)
    assert times.overlap_us == len(communication & compute)
    assert times.exposed_communication_us == len(communication - compute)
    assert times.exposed_memory_us == len(memory - compute - communication)
    assert times.kernel_sum_us == sum(end - start for start, end in rows)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_interval, st.integers(0, 1)), min_size=1, max_size=20))
def test_parents_are_the_latest_that_enclose(rows: list[tuple[tuple[int, int], int]]) -> None:
    start, end = (np.array([row[0][i] for row in rows], dtype=np.int64) for i in (0, 1))
    threads = np.array([row[1] for row in rows])
    zeros = np.zeros(len(rows), dtype=np.int32)
    nesting = nest(HostEvents(zeros, zeros, start, end, threads))
    finish = np.maximum(2 * end, 2 * start + 1)
    order = nesting.order.tolist()
    for place, row in enumerate(order):
        enclosing = [
            other
            for other in order[:place]
            if threads[other] == threads[row] and finish[other] >= finish[row]
        ]
        assert nesting.parent[row] == (enclosing[-1] if enclosing else -1)
        assert nesting.depth[row] == (nesting.depth[enclosing[-1]] + 1 if enclosing else 0)
