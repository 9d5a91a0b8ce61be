"""Monitors: rates from counters, columns, Prometheus text, and the thread that fills them."""

import os
import threading
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hotloop.machine.devices.gpu import GpuDevice, GpuSample
from hotloop.machine.monitor.columns import Columns, Metric
from hotloop.machine.monitor.monitor import Monitor
from hotloop.machine.monitor.prometheus import exposition, write_textfile
from hotloop.machine.monitor.source import Sample
from hotloop.machine.monitor.sources import CounterSource, CpuSource, GpuSource

_Times = namedtuple("_Times", "user system idle iowait steal guest")
_Disk = namedtuple("_Disk", "read_bytes write_bytes")


def _core(number: int) -> Metric:
    return Metric("cpu_utilization_ratio", (("core", str(number)),))


def test_core_use_is_what_happened_between_two_samples() -> None:
    moments = iter(
        [
            [_Times(0, 0, 0, 0, 0, 0), _Times(0, 0, 0, 0, 0, 0)],
            [_Times(3, 1, 4, 2, 0, 3), _Times(0, 0, 5, 0, 5, 0)],
        ]
    )
    source = CpuSource(lambda: next(moments))
    assert source.sample(0.0) == {}
    sample = source.sample(10.0)
    assert sample[_core(0)] == pytest.approx(0.4)
    assert sample[_core(1)] == 0.0
    assert sample[Metric("cpu_busy_ratio")] == pytest.approx(0.2)
    assert sample[Metric("cpu_iowait_ratio")] == pytest.approx(0.1)
    assert sample[Metric("cpu_steal_ratio")] == pytest.approx(0.25)


def test_rates_come_from_counters_and_a_reset_counter_is_not_a_rate() -> None:
    moments = iter([_Disk(0, 0), _Disk(100, 50), _Disk(0, 60), None])
    source = CounterSource(lambda: next(moments), {"read_bytes": "read", "write_bytes": "written"})
    assert source.sample(0.0) == {}
    assert source.sample(2.0) == {Metric("read"): 50.0, Metric("written"): 25.0}
    assert source.sample(3.0) == {Metric("written"): 10.0}
    assert source.sample(4.0) == {}


class _OneGpu:
    """A driver that tells some things and not others."""

    def __init__(self, *samples: GpuSample) -> None:
        self._samples = iter(samples)

    def devices(self) -> list[GpuDevice]:
        return [GpuDevice(index=0, name="test device", memory_bytes=None)]

    def sample(self, index: int) -> GpuSample:
        return next(self._samples)


def test_what_the_driver_does_not_tell_has_no_metric() -> None:
    seen = GpuSample(power_w=250.0, throttle_reasons=("power cap",), pids=(1, os.getpid()))
    from_another_namespace = GpuSample(pids=(2**22 + 1,))
    source = GpuSource(_OneGpu(seen, GpuSample(), from_another_namespace), (os.getpid(),))
    gpu = (("gpu", "0"),)
    assert source.sample(0.0) == {
        Metric("gpu_power_w", gpu): 250.0,
        Metric("gpu_throttled_ratio", gpu): 1.0,
        Metric("gpu_throttled_ratio", (*gpu, ("reason", "power cap"))): 1.0,
        Metric("gpu_foreign_num_processes", gpu): 1.0,
        Metric("gpu_own_num_processes", gpu): 1.0,
    }
    assert source.sample(1.0) == {}
    assert source.sample(2.0) == {}


def test_a_column_is_nan_where_it_was_not_measured() -> None:
    columns = Columns()
    early, late = Metric("early"), Metric("late")
    columns.append(0.0, {early: 1.0})
    columns.append(1.0, {late: 2.0})
    assert columns.column(Metric("never")) is None
    assert columns.spread(early, start_s=0.5) is None
    column = columns.column(late)
    assert column is not None
    assert np.isnan(column[0])
    assert columns.last() == {late: 2.0}


def test_columns_grow_and_keep_everything() -> None:
    columns, metric = Columns(), Metric("m")
    for number in range(1000):
        columns.append(float(number), {metric: float(number)} if number % 2 else {})
    spread = columns.spread(metric, start_s=500.0, end_s=700.0)
    assert spread is not None
    assert (spread.num, spread.low, spread.median, spread.high) == (100, 501.0, 600.0, 699.0)
    assert list(columns.times_s) == list(range(1000))


def test_prometheus_text() -> None:
    sample = {
        Metric("cpu_busy_ratio"): 0.5,
        Metric("gpu_throttled_ratio", (("gpu", "0"), ("reason", 'a "b"\\'))): 1.0,
    }
    assert exposition(sample) == (
        "# HELP hotloop_cpu_busy_ratio Busy share of all cores, 0 to 1.\n"
        "# TYPE hotloop_cpu_busy_ratio gauge\n"
        "hotloop_cpu_busy_ratio 0.5\n"
        "# HELP hotloop_gpu_throttled_ratio 1 where clocks are held down; by reason where there is one.\n"
        "# TYPE hotloop_gpu_throttled_ratio gauge\n"
        'hotloop_gpu_throttled_ratio{gpu="0",reason="a \\"b\\"\\\\"} 1.0\n'
    )
    assert exposition({}) == ""


def test_the_textfile_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "hotloop.prom"
    write_textfile(path, {Metric("m"): 1.0})
    write_textfile(path, {Metric("m"): 2.0})
    assert path.read_text() == "# TYPE hotloop_m gauge\nhotloop_m 2.0\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["hotloop.prom"]


class _Counting:
    def __init__(self, fails_at: int = -1) -> None:
        self.num = 0
        self.enough = threading.Event()
        self._fails_at = fails_at

    def sample(self, now_s: float, /) -> Sample:
        self.num += 1
        if self.num >= 4:
            self.enough.set()
        if self.num == self._fails_at:
            raise OSError("gone")
        return {Metric("count"): float(self.num)}


@pytest.fixture
def ticking() -> Iterator[float]:
    return iter(float(number) for number in range(10_000))


def test_the_thread_samples_until_the_block_ends(tmp_path: Path, ticking: Iterator[float]) -> None:
    source, file = _Counting(fails_at=2), tmp_path / "m.prom"
    monitor = Monitor(interval_s=0.001, sources=[source], prometheus=file, clock=lambda: next(ticking))
    with monitor:
        assert source.enough.wait(60)
    num = source.num
    column = monitor.columns.column(Metric("count"))
    assert column is not None
    assert len(column) == num
    assert np.isnan(column[1])
    assert monitor.errors == {"_Counting": "gone"}
    assert column[2] == 3.0
    assert f"hotloop_count {float(num)}" in file.read_text()
    assert "hotloop-monitor" not in {thread.name for thread in threading.enumerate()}


def test_a_prometheus_file_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    monitor = Monitor(sources=[], prometheus=tmp_path / "no folder" / "m.prom")
    with pytest.raises(FileNotFoundError):
        monitor.__enter__()


def test_this_machine_has_cores_and_memory_and_no_invented_gpu() -> None:
    with Monitor(interval_s=0.2) as monitor:
        while len(monitor.columns.times_s) < 3:
            threading.Event().wait(0.05)
    memory = monitor.columns.spread(Metric("memory_available_bytes"))
    assert memory is not None
    assert memory.low > 0
    busy = monitor.columns.column(_core(0))
    assert busy is not None
    assert np.nanmax(busy) <= 1.0
    if not (Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()):
        assert not [metric for metric in monitor.columns.metrics if metric.name.startswith("gpu")]
