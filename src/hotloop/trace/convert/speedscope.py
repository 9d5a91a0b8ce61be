"""speedscope's evented profiles: one per host thread and per device stream."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hotloop.trace.link.python_lines import parse_frame
from hotloop.trace.read.clock import Int64
from hotloop.trace.read.columns import Array
from hotloop.trace.read.trace import Trace

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(trace: Trace, target: Path) -> int:
    """Write the trace.

    Returns:
        The number of profiles.
    """
    profiles = [*_host_profiles(trace), *_device_profiles(trace)]
    document = {
        "$schema": _SCHEMA,
        "exporter": "hotloop",
        "name": trace.label,
        "shared": {"frames": [_frame(name) for name in trace.names]},
        "profiles": profiles,
    }
    target.write_bytes(msgspec.json.encode(document))
    return len(profiles)


def _frame(name: str) -> dict[str, Any]:
    site = parse_frame(name)
    return {"name": name} if site is None else {"name": site.function, "file": site.path, "line": site.line}


def _host_profiles(trace: Trace) -> list[dict[str, Any]]:
    host = trace.host
    found = []
    for thread in np.unique(host.thread).tolist():
        rows = np.flatnonzero(host.thread == thread)
        process, tid = trace.threads[thread]
        title = trace.thread_names.get(thread) or f"process {process} thread {tid}"
        found.append(_profile(title, host.name[rows], host.start[rows], host.end[rows]))
    return found


def _device_profiles(trace: Trace) -> list[dict[str, Any]]:
    device = trace.device
    found = []
    for which, stream in sorted(set(zip(device.device.tolist(), device.stream.tolist(), strict=True))):
        rows = np.flatnonzero((device.device == which) & (device.stream == stream))
        title = f"device {which} stream {stream}"
        found.append(_profile(title, device.name[rows], device.start[rows], device.end[rows]))
    return found


def _profile(title: str, names: Array, start: Int64, end: Int64) -> dict[str, Any]:
    """Openings and closings in an order that nests; an event that outlives its parent is cut there."""
    order = np.lexsort((-end, start))
    origin = int(start.min())
    events: list[dict[str, Any]] = []
    stack: list[tuple[int, int]] = []
    columns = (names[order].tolist(), (start[order] - origin).tolist(), (end[order] - origin).tolist())
    for name, begin, until in zip(*columns, strict=True):
        while stack and stack[-1][1] <= begin:
            _close(events, stack)
        events.append({"type": "O", "frame": name, "at": begin})
        stack.append((name, min(until, stack[-1][1]) if stack else until))
    while stack:
        _close(events, stack)
    return {
        "type": "evented",
        "name": title,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": int(end.max()) - origin,
        "events": events,
    }


def _close(events: list[dict[str, Any]], stack: list[tuple[int, int]]) -> None:
    name, at = stack.pop()
    events.append({"type": "C", "frame": name, "at": at})
