"""The newest sample as Prometheus text, for a file that node_exporter's textfile collector reads.

The format is Prometheus' text exposition format 0.0.4. No port is opened: a fixed port would block the next
run.
"""

import os
from pathlib import Path

from hotloop.machine.monitor.columns import Metric

_HELP = {
    "cpu_utilization_ratio": "Busy share of a core, 0 to 1.",
    "cpu_busy_ratio": "Busy share of all cores, 0 to 1.",
    "cpu_iowait_ratio": "Share of core time idle while a disk was waited for, 0 to 1.",
    "cpu_steal_ratio": "Share of core time the hypervisor gave to others, 0 to 1.",
    "cpu_foreign_ratio": "Share of core time used by processes that are not the observed program's, 0 to 1.",
    "run_delay_ratio": "Seconds a second in which threads of the program were ready to run and had no core.",
    "tree_memory_bytes": "Memory of all processes of the program together, shared pages once.",
    "tree_num_processes": "Processes of the program.",
    "cpu_temperature_c": "Hottest processor sensor in degrees Celsius.",
    "memory_used_bytes": "Memory that is not available to new programs.",
    "memory_available_bytes": "Memory available to new programs without swapping.",
    "swap_used_bytes": "Swap space in use.",
    "disk_read_bytes_per_s": "Bytes read from all disks a second.",
    "disk_write_bytes_per_s": "Bytes written to all disks a second.",
    "network_received_bytes_per_s": "Bytes received on all interfaces a second.",
    "network_sent_bytes_per_s": "Bytes sent on all interfaces a second.",
    "gpu_utilization_ratio": "Share of the driver's sampling period in which a kernel ran, 0 to 1.",
    "gpu_memory_used_bytes": "Device memory in use by all processes.",
    "gpu_power_w": "Power draw in watts.",
    "gpu_temperature_c": "Core temperature in degrees Celsius.",
    "gpu_clock_hz": "Compute clock.",
    "gpu_throttled_ratio": "1 where clocks are held down; by reason where there is one.",
    "gpu_own_num_processes": "Processes on the device that are the observed program's.",
    "gpu_foreign_num_processes": "Processes on the device that are not the observed program's.",
}


def exposition(sample: dict[Metric, float]) -> str:
    """Return one sample as Prometheus text, every metric a gauge with `hotloop_` before its name."""
    families: dict[str, list[str]] = {}
    for metric, value in sorted(sample.items(), key=lambda item: str(item[0])):
        families.setdefault(metric.name, []).append(f"hotloop_{metric} {value!r}")
    lines = []
    for name, series in families.items():
        if name in _HELP:
            lines.append(f"# HELP hotloop_{name} {_HELP[name]}")
        lines += [f"# TYPE hotloop_{name} gauge", *series]
    return "\n".join(lines) + "\n" if lines else ""


def write_textfile(path: Path, sample: dict[Metric, float]) -> None:
    """Replace the file in one move, so that a collector never reads half a sample."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(exposition(sample), encoding="utf-8")
    os.replace(partial, path)
