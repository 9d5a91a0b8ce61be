"""The steps and monitors of a session as a Chrome trace, which Perfetto and TensorBoard's profiler plug-in read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np

from hotloop.model.observation import Observation
from hotloop.model.step_series import StepKind, StepSeries

MAX_STEPS = 20_000
"""Of each process; viewers become slow beyond some hundred thousand events."""


def chrome_trace(seen: Observation) -> dict[str, Any]:
    """Return the document: every process a track of steps and one of phases, every monitor a counter; times in us."""
    events = [event for one in seen.series for event in _process(one)]
    return {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "otherData": {"exporter": "hotloop", "command": shlex.join(seen.command)},
        "traceEvents": [*events, *_monitors(seen)],
    }


def _process(one: StepSeries) -> Iterator[dict[str, Any]]:
    name = f"rank {one.rank}" if one.rank is not None else "training process"
    yield _named("process_name", one.pid, 0, name)
    yield _named("thread_name", one.pid, 0, "steps")
    yield _named("thread_name", one.pid, 1, "phases of the last steady steps")
    begins = np.frombuffer(one.begin_s, "<f8")[-MAX_STEPS:]
    durations = np.frombuffer(one.duration_s, "<f4")[-MAX_STEPS:]
    first = one.num - len(begins)
    for at, (begin, spent) in enumerate(zip(begins.tolist(), durations.tolist(), strict=True)):
        kind = StepKind(one.kind[first + at]).name.lower()
        # ProfilerStep# is what the plug-in looks for.
        yield _event(f"ProfilerStep#{first + at}", one.pid, 0, begin, spent, kind)
    for span in one.spans:
        yield _event(span.name, one.pid, 1, span.begin_s, span.end_s - span.begin_s, "phase")


def _event(name: str, pid: int, track: int, begin_s: float, spent_s: float, kind: str) -> dict[str, Any]:
    times = {"ts": round(begin_s * 1e6, 3), "dur": round(spent_s * 1e6, 3)}
    return {"ph": "X", "name": name, "cat": kind, "pid": pid, "tid": track, **times}


def _named(what: str, pid: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": track, "args": {"name": name}}


def _monitors(seen: Observation) -> Iterator[dict[str, Any]]:
    if seen.monitors is None:
        return
    for name, monitor in seen.monitors.metrics.items():
        for time_s, value in zip(seen.monitors.times_s, monitor.samples, strict=True):
            if value is not None:
                yield {
                    "ph": "C",
                    "name": name,
                    "pid": 0,
                    "ts": round(time_s * 1e6, 3),
                    "args": {"value": value},
                }
