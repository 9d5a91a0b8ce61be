"""How the processor is wired: cores, memory nodes, caches, clocks, as the kernel shows them."""

import os
from pathlib import Path

import psutil

from hotloop.machine.host import cgroup
from hotloop.machine.host.identity import num_cores
from hotloop.machine.host.kernel_list import core_list
from hotloop.model.machine import Cores


def cores(root: Path = Path("/")) -> Cores:
    """Return what the kernel tells; what it does not is None."""
    cpu0 = root / "sys/devices/system/cpu/cpu0"
    max_khz = _number(_read(cpu0 / "cpufreq/cpuinfo_max_freq"))
    return Cores(
        num_logical=os.cpu_count() or 1,
        num_usable=num_cores(root),
        num_physical=psutil.cpu_count(logical=False),
        quota_cores=cgroup.quota_cores(root),
        numa_nodes=_numa_nodes(root),
        max_clock_hz=None if max_khz is None else max_khz * 1e3,
        last_level_cache_bytes=_last_level_cache_bytes(cpu0),
        governor=_read(cpu0 / "cpufreq/scaling_governor") or None,
        hypervisor=_hypervisor(root),
    )


def _numa_nodes(root: Path) -> tuple[tuple[int, ...], ...]:
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    ordered = sorted(folders, key=lambda folder: int(folder.name[4:]))
    return tuple(core_list(_read(folder / "cpulist")) for folder in ordered)


def _last_level_cache_bytes(cpu0: Path) -> int | None:
    """Of one processor complex: the largest cache that core 0 sees, times the complexes of the machine."""
    sizes = [_size(_read(folder / "size")) for folder in (cpu0 / "cache").glob("index*")]
    largest = max((size for size in sizes if size is not None), default=None)
    shared = max(
        (len(core_list(_read(f / "shared_cpu_list"))) for f in (cpu0 / "cache").glob("index*")), default=0
    )
    if largest is None or shared == 0:
        return largest
    return largest * max(1, (os.cpu_count() or 1) // shared)


def _hypervisor(root: Path) -> bool | None:
    text = _read(root / "proc/cpuinfo")
    return " hypervisor" in text.split("\n\n", 1)[0] if text else None


def _size(text: str) -> int | None:
    """`32768K` in bytes."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number = _number(text[:-1])
    return None if number is None or text[-1] not in units else int(number) * units[text[-1]]


def _number(text: str) -> float | None:
    return float(text) if text.isdigit() else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
