"""Where the monitors' numbers come from: each source says what it measured at one moment, no more."""

from collections.abc import Callable, Sequence
from typing import Any

import psutil

from hotloop.machine.devices.gpu import GpuReader, num_foreign
from hotloop.machine.environment.contention import ForeignLoad, LoadSnapshot, foreign_share
from hotloop.machine.host.processes import descendants, read_processes
from hotloop.machine.monitor.columns import Metric
from hotloop.machine.monitor.program_sources import program_sources
from hotloop.machine.monitor.source import Sample, Source


class CpuSource:
    """Busy share of each core, and what the hypervisor and the disks took, since the sample before."""

    def __init__(self, read: Callable[[], Sequence[Any]] = lambda: psutil.cpu_times(percpu=True)) -> None:
        self._read = read
        self._before: Sequence[Any] | None = None

    def sample(self, _now_s: float, /) -> Sample:
        """Return shares, 0 to 1; nothing at the first call, which has no sample before it."""
        now, before = self._read(), self._before
        self._before = now
        if before is None or len(before) != len(now):
            return {}
        sample: Sample = {}
        gone = dict.fromkeys(("busy", "iowait", "steal"), 0.0)
        total = 0.0
        for core, (was, is_) in enumerate(zip(before, now, strict=True)):
            times = _core_times(was, is_)
            span = sum(times.values())
            if span <= 0:
                continue
            times["busy"] = span - sum(times.get(name, 0.0) for name in ("idle", "iowait", "steal"))
            sample[Metric("cpu_utilization_ratio", (("core", str(core)),))] = times["busy"] / span
            gone = {name: value + times.get(name, 0.0) for name, value in gone.items()}
            total += span
        if total > 0:
            sample |= {Metric(f"cpu_{name}_ratio"): value / total for name, value in gone.items()}
        return sample


def _core_times(was: Any, is_: Any) -> dict[str, float]:
    """Seconds by kind; guest time is inside user time."""
    return {
        name: max(0.0, getattr(is_, name) - getattr(was, name))
        for name in is_._fields
        if not name.startswith("guest")
    }


class MemorySource:
    """Main memory and swap."""

    def sample(self, _now_s: float, /) -> Sample:
        """Return bytes."""
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        return {
            Metric("memory_used_bytes"): float(memory.total - memory.available),
            Metric("memory_available_bytes"): float(memory.available),
            Metric("swap_used_bytes"): float(swap.used),
        }


class CounterSource:
    """Rates from counters that only grow: disks and network, all devices together.

    Args:
        read: gives the counters; None where the system has none.
        names: field of the counters to name of the metric.
    """

    def __init__(self, read: Callable[[], Any], names: dict[str, str]) -> None:
        self._read = read
        self._names = names
        self._before: tuple[float, Any] | None = None

    def sample(self, now_s: float, /) -> Sample:
        """Return the rate since the sample before; nothing at the first call or without counters."""
        counters, before = self._read(), self._before
        if counters is None:
            return {}
        self._before = (now_s, counters)
        if before is None or now_s <= before[0]:
            return {}
        rates = {
            Metric(name): (getattr(counters, field) - getattr(before[1], field)) / (now_s - before[0])
            for field, name in self._names.items()
        }
        return {metric: rate for metric, rate in rates.items() if rate >= 0}


class TemperatureSource:
    """The hottest processor sensor; machines without one are asked only once."""

    def __init__(self) -> None:
        self._there = hasattr(psutil, "sensors_temperatures")

    def sample(self, _now_s: float, /) -> Sample:
        """Return degrees Celsius."""
        if not self._there:
            return {}
        sensors = psutil.sensors_temperatures()
        found = [reading.current for name in _CPU_SENSORS for reading in sensors.get(name, [])]
        self._there = bool(found)
        return {Metric("cpu_temperature_c"): max(found)} if found else {}


_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Kernel drivers of processor sensors: Intel, AMD, AMD (out of tree), Arm boards."""


class ForeignSource:
    """The share of the machine used by processes that are not ours.

    Every process of the machine is read for it, at 33 microseconds each: so not at every sample.
    """

    def __init__(
        self, pids: tuple[int, ...], load: ForeignLoad | None = None, interval_s: float = 5.0
    ) -> None:
        self._pids = pids
        self._load = load or ForeignLoad()
        self._interval_s = interval_s
        self._before: tuple[float, LoadSnapshot] | None = None

    def sample(self, now_s: float, /) -> Sample:
        """Return the share of the last few seconds, 0 to 1; nothing in the samples between."""
        before = self._before
        if before is not None and now_s - before[0] < self._interval_s:
            return {}
        now = self._load.snapshot(self._pids)
        self._before = (now_s, now)
        share = None if before is None else foreign_share(before[1], now)
        return {} if share is None else {Metric("cpu_foreign_ratio"): share}


class GpuSource:
    """All GPUs of one driver library."""

    def __init__(self, reader: GpuReader, pids: tuple[int, ...] = ()) -> None:
        self._reader = reader
        self._indices = [device.index for device in reader.devices()]
        self._pids = pids

    def sample(self, _now_s: float, /) -> Sample:
        """Return what the driver tells of each device."""
        sample: Sample = {}
        looks = {index: self._reader.sample(index) for index in self._indices}
        processes = read_processes() if any(seen.pids for seen in looks.values()) else {}
        ours = descendants(processes, self._pids)
        for index, seen in looks.items():
            label = (("gpu", str(index)),)
            for name in _GPU_NAMES:
                value = getattr(seen, name)
                if value is not None:
                    sample[Metric(f"gpu_{name}", label)] = value
            if seen.throttle_reasons is not None:
                sample[Metric("gpu_throttled_ratio", label)] = float(bool(seen.throttle_reasons))
                for reason in seen.throttle_reasons:
                    sample[Metric("gpu_throttled_ratio", (*label, ("reason", reason)))] = 1.0
            foreign = None if seen.pids is None else num_foreign(seen.pids, ours, processes)
            if foreign is not None and seen.pids is not None:
                sample[Metric("gpu_foreign_num_processes", label)] = float(foreign)
                sample[Metric("gpu_own_num_processes", label)] = float(len(set(seen.pids)) - foreign)
        return sample


_GPU_NAMES = ("utilization_ratio", "memory_used_bytes", "power_w", "temperature_c", "clock_hz")


def host_sources(pids: tuple[int, ...]) -> list[Source]:
    """Return every source that needs no accelerator; `pids` are the roots of our process trees."""
    return [
        CpuSource(),
        MemorySource(),
        CounterSource(
            psutil.disk_io_counters,
            {"read_bytes": "disk_read_bytes_per_s", "write_bytes": "disk_write_bytes_per_s"},
        ),
        CounterSource(
            psutil.net_io_counters,
            {"bytes_recv": "network_received_bytes_per_s", "bytes_sent": "network_sent_bytes_per_s"},
        ),
        CounterSource(psutil.swap_memory, {"sin": "swap_in_bytes_per_s", "sout": "swap_out_bytes_per_s"}),
        TemperatureSource(),
        ForeignSource(pids),
        *program_sources(pids),
    ]
