"""From watched calls to call sites with their time per step."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from hotloop.model.deep import CallSite, CallSites
from hotloop.observe.decode.instrument_files import DeepFile
from hotloop.observe.decode.spans import NS, Timeline
from hotloop.stats.student import student_quantile


def read_call_sites(folder: Path, file: DeepFile, lead: Timeline) -> CallSites:  # noqa: ARG001 - a reader
    """Return the sites of one process, the most expensive first."""
    steps = file.value["steps"]
    sites = [_site(key, _per_step(steps, number)) for number, key in enumerate(file.value["keys"])]
    sites.sort(key=lambda site: (-site.time_per_step_s, site.path, site.line))
    return CallSites(
        num_steps=len(steps),
        window_s=file.window_s,
        sites=tuple(sites),
        functions_watched=file.value["functions"],
    )


def _per_step(steps: Sequence[Any], number: int) -> list[tuple[int, int, int]]:
    """Return count, nanoseconds and bytes of each step; a step without the call has none."""
    found = [{row[0]: tuple(row[1:]) for row in step} for step in steps]
    return [step.get(number, (0, 0, 0)) for step in found]


def _site(key: Sequence[Any], spent: Sequence[tuple[int, int, int]]) -> CallSite:
    path, line, function, call, kind, device, through, loading = key
    times = [nanoseconds * NS for _, nanoseconds, _ in spent]
    if device == "cpu":
        times = _not_interrupted(times)
    middle, reach = fmean(times), _reach(times)
    return CallSite(
        path=path,
        line=line,
        function=function,
        call=call,
        kind=kind,
        device=device,
        count_per_step=fmean(count for count, _, _ in spent),
        time_per_step_s=middle,
        low_s=max(0.0, middle - reach),
        high_s=middle + reach,
        bytes_per_step=None if kind == "sync" else fmean(size for _, _, size in spent),
        through=through,
        loading=loading,
    )


UNUSUAL = 3.0
"""Times the median of the steps that have the call: the thread had to leave its core in the middle of it."""


def _not_interrupted(times: Sequence[float]) -> list[float]:
    """Return times on the host without what another program took in the middle of a call."""
    usual = median([time for time in times if time] or [0.0])
    return [min(time, UNUSUAL * usual) for time in times]


def _reach(times: Sequence[float]) -> float:
    """Half the 95% interval of the mean; one step says nothing, so it reaches down to nothing."""
    if len(times) < 2:
        return times[0]
    return student_quantile(0.975, len(times) - 1) * stdev(times) / sqrt(len(times))
