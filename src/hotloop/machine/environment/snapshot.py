"""What the machine is doing at the moment: one look of about a second, for the environment check."""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import msgspec
import psutil

from hotloop.machine.devices.accelerators import accelerators
from hotloop.machine.devices.amd import open_amd
from hotloop.machine.devices.gpu import GpuSample
from hotloop.machine.devices.nvml import open_nvml
from hotloop.machine.environment.contention import (
    ForeignLoad,
    LoadSnapshot,
    foreign_processes,
    foreign_share,
    steal_share,
    throttled_s,
)
from hotloop.machine.host.topology import cores
from hotloop.model.machine import Cores

_LOOK_S = 1.0
"""200 ticks on two cores: one tick is 0.5%."""
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "OMP_DYNAMIC",
    "GOMP_SPINCOUNT",
    "GOMP_CPU_AFFINITY",
    "KMP_BLOCKTIME",
    "KMP_AFFINITY",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
_DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class MachineSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the environment check judges; None means the system does not tell."""

    cores: Cores
    wall_s: float
    """How long the look took."""
    folder: str
    disk_bytes: int
    disk_free_bytes: int
    swap_used_bytes: int
    swap_bytes_per_s: float
    clock_drift_ratio: float
    """How much faster the wall clock ran than the monotonic one."""
    clock_source: str | None = None
    foreign_ratio: float | None = None
    busiest: tuple[tuple[str, int, float], ...] = ()
    """Name, pid and share of the machine of the busiest foreign processes."""
    steal_ratio: float | None = None
    throttled_s: float | None = None
    thermal_events: int | None = None
    temperature_c: float | None = None
    temperature_limit_c: float | None = None
    variables: dict[str, str] = {}
    device_variables: dict[str, str] = {}
    hash_seed: str | None = None
    num_gpus: int = 0
    gpus: dict[int, GpuSample] = {}
    """Those that a driver library answers for."""
    foreign_gpu_processes: dict[int, int] = {}
    """By device: all there are, because nothing of ours runs on one during the look."""


def look(
    folder: Path,
    *,
    seconds: float = _LOOK_S,
    environment: Mapping[str, str] = os.environ,
    wait: Callable[[float], None] = time.sleep,
    load: ForeignLoad | None = None,
) -> MachineSnapshot:
    """Watch the machine for some seconds and return what was seen; `folder` is where trials would write."""
    load = load or ForeignLoad()
    before, swap_before, clocks_before = load.snapshot((os.getpid(),)), _swapped(), _clocks()
    wait(seconds)
    after, swap_after, clocks_after = load.snapshot((os.getpid(),)), _swapped(), _clocks()
    wall_s = max(clocks_after[1] - clocks_before[1], 1e-9)
    disk = shutil.disk_usage(folder)
    temperature_c, limit_c = _temperature()
    gpus = _gpus()
    return MachineSnapshot(
        cores=cores(),
        wall_s=wall_s,
        folder=str(folder.resolve()),
        disk_bytes=disk.total,
        disk_free_bytes=disk.free,
        swap_used_bytes=psutil.swap_memory().used,
        swap_bytes_per_s=(swap_after - swap_before) / wall_s,
        clock_drift_ratio=(clocks_after[0] - clocks_before[0]) / wall_s - 1,
        clock_source=_clock_source(),
        foreign_ratio=foreign_share(before, after),
        busiest=tuple((one.name, one.pid, share) for one, share in foreign_processes(before, after)),
        steal_ratio=steal_share(before, after),
        throttled_s=throttled_s(before, after),
        thermal_events=_slow_downs(before, after),
        temperature_c=temperature_c,
        temperature_limit_c=limit_c,
        variables={name: environment[name] for name in _THREAD_VARIABLES if name in environment},
        device_variables={name: environment[name] for name in _DEVICE_VARIABLES if name in environment},
        hash_seed=environment.get("PYTHONHASHSEED"),
        num_gpus=len(accelerators()),
        gpus=gpus,
        foreign_gpu_processes={i: len(gpu.pids) for i, gpu in gpus.items() if gpu.pids is not None},
    )


def _swapped() -> int:
    swap = psutil.swap_memory()
    return int(swap.sin + swap.sout)


def _clocks() -> tuple[float, float]:
    return time.time(), time.monotonic()


def _slow_downs(before: LoadSnapshot, after: LoadSnapshot) -> int | None:
    if before.thermal_events is None or after.thermal_events is None:
        return None
    return after.thermal_events - before.thermal_events


def _clock_source() -> str | None:
    path = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _temperature() -> tuple[float | None, float | None]:
    """The hottest processor sensor and the limit that its driver names."""
    if not hasattr(psutil, "sensors_temperatures"):
        return None, None
    sensors = psutil.sensors_temperatures()
    readings = [one for name in ("coretemp", "k10temp", "zenpower") for one in sensors.get(name, [])]
    hottest = max(readings, key=lambda one: one.current, default=None)
    return (None, None) if hottest is None else (hottest.current, hottest.high)


def _gpus() -> dict[int, GpuSample]:
    with ExitStack() as libraries:
        readers = [libraries.enter_context(library()) for library in (open_nvml, open_amd)]
        return {
            device.index: reader.sample(device.index)
            for reader in readers
            if reader is not None
            for device in reader.devices()
        }
