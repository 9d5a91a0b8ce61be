"""Plots for notebooks; matplotlib is needed only here."""

import importlib
from typing import Any

import numpy as np

from hotloop.model.errors import ExitCode, HotloopError
from hotloop.trace.analysis import TraceAnalysis
from hotloop.trace.facts.memory import memory_timeline
from hotloop.trace.read.trace import Trace

Axes = Any
"""`matplotlib.axes.Axes`, which type checkers see only where it is installed."""


def plot_breakdown(*analyses: TraceAnalysis, ax: Axes | None = None) -> Axes:
    """One bar per trace or rank: compute, exposed communication and copies, and idle time by cause, in ms."""
    axes = ax if ax is not None else _new_axes()
    labels = [f"rank {a.rank}" if a.rank is not None else a.file[:24] for a in analyses]
    parts = [_parts(analysis) for analysis in analyses]
    left = np.zeros(len(analyses))
    for name in dict.fromkeys(name for part in parts for name in part):
        values = np.array([part.get(name, 0.0) for part in parts])
        axes.barh(labels, values, left=left, label=name)
        left = left + values
    axes.set_xlabel("ms")
    axes.invert_yaxis()
    axes.legend(fontsize="x-small", ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    return axes


def plot_memory(trace: Trace, ax: Axes | None = None) -> Axes:
    """Allocated device memory over time, in GB over ms."""
    axes = ax if ax is not None else _new_axes()
    on_device = np.flatnonzero(trace.memory.device_type > 0)
    for device in np.unique(trace.memory.device_id[on_device]).tolist():
        rows = on_device[trace.memory.device_id[on_device] == device]
        times, allocated, _ = memory_timeline(trace, rows)
        axes.step((times - times[0]) / 1e6, allocated / 1e9, where="post", label=f"device {device}")
    axes.set_xlabel("ms")
    axes.set_ylabel("GB allocated")
    return axes


def _parts(analysis: TraceAnalysis) -> dict[str, float]:
    device = analysis.device
    if device is None:
        return {}
    busy = {
        "compute": device.compute_us,
        "exposed communication": device.exposed_communication_us,
        "exposed copies": device.exposed_memory_us,
    }
    idle = {f"idle: {name.removesuffix('_us')}": value for name, value in analysis.idle_causes.items()}
    return {name: value / 1000 for name, value in {**busy, **idle}.items() if value}


def _new_axes() -> Any:
    try:
        pyplot = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise HotloopError(
            "plots need matplotlib, which is not installed", "pip install matplotlib", ExitCode.MACHINE
        ) from error
    return pyplot.subplots(figsize=(9, 4), layout="constrained")[1]
