"""The step times one after another, with what happened between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hotloop.model.step_series import StepKind, StepSeries
from hotloop.report.charts.thinning import extremes

MAX_MARKS = 200
"""More lines than that are a wall."""


def durations(series: StepSeries) -> npt.NDArray[np.float64]:
    """Return the seconds of every step."""
    return np.frombuffer(series.duration_s, dtype="<f4").astype(np.float64)


def kinds(series: StepSeries) -> npt.NDArray[np.uint8]:
    """Return the `StepKind` of every step."""
    return np.frombuffer(series.kind, dtype=np.uint8)


def steady_durations(series: Sequence[StepSeries]) -> npt.NDArray[np.float64]:
    """Return the seconds of the steps that figures are taken from, of the first process."""
    if not series:
        return np.empty(0)
    steady: npt.NDArray[np.float64] = durations(series[0])[kinds(series[0]) == StepKind.STEADY]
    return steady


def step_lines(series: Sequence[StepSeries]) -> dict[str, Any]:
    """Return the points to draw, in milliseconds, of every process."""
    return {
        "series": [_line(one) for one in series],
        "epochs": _marks(series[0].epochs),
        "evaluations": _marks(series[0].evaluations),
        "checkpoints": _marks(series[0].checkpoints),
    }


def _line(one: StepSeries) -> dict[str, Any]:
    values = durations(one) * 1e3
    kept = extremes(values)
    kind = kinds(one)
    name = f"rank {one.rank}" if one.rank is not None else f"process {one.pid}"
    return {
        "name": name,
        "x": kept.tolist(),
        "y": [round(value, 3) for value in values[kept].tolist()],
        "kind": kind[kept].tolist(),
    }


def _marks(places: Sequence[int]) -> list[int]:
    every = -(-len(places) // MAX_MARKS) or 1
    return list(places[::every])
