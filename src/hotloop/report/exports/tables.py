"""The raw samples of a session as tables: steps, blocks, holds, losses, monitors."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from hotloop.model.observation import Observation
from hotloop.model.step_series import StepKind, StepSeries
from hotloop.model.tuning import Measured, TuneResult
from hotloop.report.content.content import ReportContent

Column = Sequence[object]
Table = Mapping[str, Column]
"""Columns by name, all of one length."""


def raw_tables(content: ReportContent) -> dict[str, Table]:
    """Return `steps`, `blocks`, `holds`, `losses` and `monitors`, those of them that there are."""
    tables = {
        "steps": _steps(content.observation) if content.observation else {},
        "blocks": _blocks(content.tuning, content) if content.tuning else {},
        "holds": _columns(("process", "hold", "on", "step", "duration_s"), _of_holds(content)),
        "losses": _losses(content),
        "monitors": _monitors(content.observation) if content.observation else {},
    }
    return {name: table for name, table in tables.items() if table}


def as_csv(table: Table) -> str:
    """Return a table as CSV; what was not measured is an empty field."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        writer.writerow("" if _is_missing(cell) else cell for cell in row)
    return out.getvalue()


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def _steps(seen: Observation) -> Table:
    parts = [_of_process(one) for one in seen.series]
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: [cell for part in parts for cell in part.get(name, [None] * len(part["step"]))]
        for name in names
    }


def _of_process(one: StepSeries) -> dict[str, list[object]]:
    return {
        "rank": [one.rank] * one.num,
        "pid": [one.pid] * one.num,
        "step": list(range(one.num)),
        "kind": [StepKind(kind).name.lower() for kind in one.kind],
        "begin_s": np.frombuffer(one.begin_s, "<f8").tolist(),
        "duration_s": np.frombuffer(one.duration_s, "<f4").tolist(),
        **{f"{name}_s": np.frombuffer(column, "<f4").tolist() for name, column in one.phases.items()},
    }


def _blocks(tuning: TuneResult, content: ReportContent) -> Table:
    return _columns(("candidate", "pair", "block", "ratio"), (*_of_trials(tuning), *_of_sets(content)))


def _columns(names: Sequence[str], rows: Iterable[tuple[object, ...]]) -> Table:
    """Return rows as columns; without a row no table."""
    kept = list(rows)
    return {name: [row[at] for row in kept] for at, name in enumerate(names)} if kept else {}


def _of_trials(tuning: TuneResult) -> Iterator[tuple[str, int, int, float]]:
    for trial in tuning.trials:
        if isinstance(trial.outcome, Measured):
            for pair, blocks in enumerate(trial.outcome.pairs):
                for block, value in enumerate(blocks):
                    yield trial.candidate.label, pair, block, math.exp(value)


def _of_sets(content: ReportContent) -> Iterator[tuple[str, int, int, float]]:
    for number, one in enumerate(content.sets):
        for block, times in enumerate(one.rounds):
            yield "the plan, confirmed", number, block, times[0] / times[-1]


def _losses(content: ReportContent) -> Table:
    found = content.losses
    if found is None:
        return {}
    curves = [("original", found.original), *(("original again", one) for one in found.repeats)]
    curves += [("original with rounding noise", found.perturbed), *(("plan", one) for one in found.plan)]
    return _columns(
        ("run", "number", "step", "loss"),
        (
            (name, number, step, loss)
            for number, (name, curve) in enumerate(curves)
            for step, loss in enumerate(curve)
        ),
    )


def _of_holds(content: ReportContent) -> Iterator[tuple[str, int, str, int, float]]:
    for process, held in content.held.items():
        for number, one in enumerate(held):
            for step, spent in enumerate(one.steps_s):
                yield process, number, " + ".join(one.on), step, spent


def _monitors(seen: Observation) -> Table:
    if seen.monitors is None:
        return {}
    return {
        "time_s": seen.monitors.times_s,
        **{name: one.samples for name, one in seen.monitors.metrics.items()},
    }
