"""What the machine did over the steady steps, from samples that are known."""

from __future__ import annotations

import msgspec
import pytest

from hotloop.machine.monitor.columns import Columns, Metric
from hotloop.model.monitors import Monitors
from hotloop.model.observation import Memory
from hotloop.model.tree_memory import TreeMemory
from hotloop.observe.run.monitoring import MAX_SAMPLES, summarize, with_tree

_BUSY = Metric("cpu_busy_ratio")


def _columns(num: int = 20) -> Columns:
    columns = Columns()
    for index in range(num):
        sample = {_BUSY: 0.1 if index < 10 else 0.9}
        if index in {12, 13}:
            sample[Metric("gpu_throttled_ratio", (("gpu", "0"), ("reason", "power cap")))] = 1.0
        if index % 5 == 0:
            sample[Metric("cpu_foreign_ratio")] = 0.2
        columns.append(100.0 + 0.5 * index, sample)
    return columns


def test_means_are_of_the_steady_steps_and_samples_of_the_whole_run() -> None:
    seen = summarize(_columns(), 104.7, 110.0, 99.0)
    assert seen is not None
    assert seen.metrics["cpu_busy_ratio"].mean == pytest.approx(0.9)
    assert len(seen.metrics["cpu_busy_ratio"].samples) == len(seen.times_s) == 20
    assert seen.times_s[0] == 1.0
    assert (seen.begin_s, seen.end_s) == pytest.approx((5.7, 11.0))


def test_what_is_not_in_every_sample() -> None:
    seen = summarize(_columns(), 104.7, 110.0, 99.0)
    assert seen is not None
    assert seen.metrics["cpu_foreign_ratio"].mean == pytest.approx(0.2), "a mean of what was measured"
    assert seen.metrics["cpu_foreign_ratio"].samples[1] is None
    (reason,) = seen.labelled("gpu_throttled_ratio").values()
    assert reason.mean == pytest.approx(0.2), "a reason is seen only while it holds"


def test_steps_that_are_shorter_than_a_sample_have_the_one_they_lie_in() -> None:
    seen = summarize(_columns(), 105.3, 105.4, 99.0)
    assert seen is not None
    assert seen.metrics["cpu_busy_ratio"].mean == pytest.approx(0.9)


def test_no_sample_no_numbers() -> None:
    assert summarize(Columns(), 104.7, 105.0, 99.0) is None


def test_a_long_run_keeps_evenly_spaced_samples() -> None:
    seen = summarize(_columns(2 * MAX_SAMPLES), 104.7, 4000.0, 99.0)
    assert seen is not None
    assert len(seen.times_s) == MAX_SAMPLES
    assert seen.interval_s == 1.0


def test_they_are_kept_with_the_observation() -> None:
    seen = summarize(_columns(), 104.7, 110.0, 99.0)
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Monitors) == seen


def _tree(mib: int, processes: int) -> dict[Metric, float]:
    counted = Metric("tree_memory_bytes", (("counted", "PSS"),))
    return {counted: float(mib << 20), Metric("tree_num_processes"): float(processes)}


def test_the_memory_of_all_processes_is_that_of_the_steps_without_the_profilers() -> None:
    columns = Columns()
    for time_s, mib, processes in ((1.0, 20, 1), (5.0, 342, 1), (6.0, 456, 3), (9.0, 900, 3)):
        columns.append(time_s, _tree(mib, processes))
    memory = Memory(peak_bytes=403 << 20, device="cpu", method="")
    tree = with_tree(memory, columns, 4.0, 7.0).tree
    assert tree == TreeMemory(peak_bytes=456 << 20, method="PSS", num_processes=3)
    assert with_tree(memory, columns, 7.0, 8.0).tree is None, "workers may not have been there before"
