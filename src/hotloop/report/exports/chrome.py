"""Steps, operators and monitors of a session as a Chrome trace, for Perfetto and TensorBoard's profiler plug-in.

The plug-in (torch-tb-profiler 0.4.3, `profiler/trace.py`) tells by their category what events are: steps are user
annotations named `ProfilerStep#n`, operators are of `cpu_op`, what runs on a device is of `kernel`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hotloop.model.observation import Observation
from hotloop.model.step_series import StepKind, StepSeries

MAX_STEPS = 20_000
"""Of each process; viewers become slow beyond some hundred thousand events."""
_CATEGORIES = {"operators": "cpu_op", "device": "kernel"}
_MACHINE = 0
"""In place of a process: of monitors, and of the device, whose number the plug-in expects there."""
_FIRST_LANE = 2
"""Of operators, after the tracks of steps and of phases."""


def chrome_trace(seen: Observation, processes: Sequence[StepSeries] | None = None) -> dict[str, Any]:
    """Return the document: tracks of steps, phases, operators and device streams, counters of monitors; times in us.

    Args:
        seen: the observation.
        processes: of it, to be told of; None: all. The plug-in takes a file to be of one.
    """
    told = seen.series if processes is None else processes
    events = [event for one in told for event in _process(one)]
    if told and told[0] is seen.series[0]:
        events += _operators(seen, told[0])
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
    # Durations are of single precision: without this a step could end after the next one has begun.
    spent_s = np.minimum(durations, np.append(np.diff(begins), np.inf))
    for at, (begin, spent) in enumerate(zip(begins.tolist(), spent_s.tolist(), strict=True)):
        kind = StepKind(one.kind[first + at]).name.lower()
        step = _event(f"ProfilerStep#{first + at}", one.pid, 0, begin, spent, "user_annotation")
        yield {**step, "args": {"kind": kind}}
    for span in one.spans:
        yield _event(span.name, one.pid, 1, span.begin_s, span.end_s - span.begin_s, "user_annotation")


def _operators(seen: Observation, one: StepSeries) -> Iterator[dict[str, Any]]:
    """The window under the profiler has a clock of its own: it is put behind the last step."""
    found = seen.deep.operators.timeline if seen.deep and seen.deep.operators else None
    if found is None or not one.num:
        return
    last_s = np.frombuffer(one.begin_s, "<f8")[-1] + np.frombuffer(one.duration_s, "<f4")[-1]
    lanes = [lane for lane in found.lanes if lane.kind in _CATEGORIES]
    for track, lane in enumerate(lanes, start=_FIRST_LANE):
        on_device = lane.kind == "device"
        pid = _MACHINE if on_device else one.pid
        yield _named("thread_name", pid, track, f"{lane.kind} {lane.number}, under the profiler, later")
        args = {"device": _MACHINE, "stream": lane.number} if on_device else {}
        for span in lane.spans:
            begin_s, spent_s = float(last_s) + span.begin_s, span.end_s - span.begin_s
            event = _event(span.name, pid, track, begin_s, spent_s, _CATEGORIES[lane.kind])
            yield {**event, "args": args}


def _event(name: str, pid: int, track: int, begin_s: float, spent_s: float, category: str) -> dict[str, Any]:
    begin_us, end_us = (round(time_s * 1e6, 3) for time_s in (begin_s, begin_s + spent_s))
    times = {"ts": begin_us, "dur": round(end_us - begin_us, 3)}
    return {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": track, **times}


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
                    "pid": _MACHINE,
                    "ts": round(time_s * 1e6, 3),
                    "args": {"value": value},
                }
