"""Where a step's time goes, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from hotloop.model.observation import Observation, Phase, StepTime
from hotloop.model.quantities import counted, duration, parts, percent, rate, shares
from hotloop.model.step_series import StepSeries
from hotloop.report.charts.histogram import histogram
from hotloop.report.charts.steps import steady_durations, step_lines
from hotloop.report.charts.thinning import rule
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import NOT_MEASURED, times
from hotloop.report.document import Block, Chart, Section, Table
from hotloop.report.sections.run_table import run_table
from hotloop.report.sections.step_tables import batches, latency, phases_table, ranks_table

NUM_STRETCHES = 10
"""In the table of the steps in order."""


def step(content: ReportContent) -> Section | None:
    """Return the section; None: no step was measured."""
    seen = content.observation
    if seen is None or seen.step is None:
        return None
    blocks: list[Block] = [_phases(content, seen)]
    if seen.inference is not None:
        blocks += [*latency(seen.inference), *batches(seen.inference)]
    blocks += _series(seen)
    if len(seen.ranks) > 1:
        blocks.append(ranks_table(seen.ranks))
    if seen.run.parts:
        blocks.append(run_table(seen.run, every=True))
    return Section(anchor="step", title="Where a step's time goes", lead=_lead(seen), blocks=tuple(blocks))


def _lead(seen: Observation) -> str:
    assert seen.step is not None
    found = seen.step
    middle = times(found.low_s, found.median_s, found.high_s)
    steps = counted(found.num, "step")
    per_s = f" ({rate(found.samples_per_s)} samples/s)" if found.samples_per_s is not None else ""
    if found.mean_s is None:
        return f"A step takes {middle}{per_s}: the median of {steps} with its 95% interval."
    return (
        f"A step takes {duration(found.mean_s)}{per_s}: the mean of {steps}{_long_ones(found)}. "
        f"The median is {middle}, with its 95% interval."
    )


def _long_ones(found: StepTime) -> str:
    return ", in which long steps count" if (found.mean_s or 0.0) > found.high_s else ""


def _phases(content: ReportContent, seen: Observation) -> Chart:
    rows = list(phases_of(content))
    names = [phase.value for phase in Phase if any(phase.value in spent for _, spent in rows)]
    assert seen.step is not None
    table = _before_and_after(rows, names) if len(rows) > 1 else phases_table(seen, seen.step)
    return Chart(
        kind="phases",
        title="A step by phase" + (", before and after" if len(rows) > 1 else ""),
        summary="; ".join(f"{row}: {_said(spent)}" for row, spent in rows),
        data={"phases": names, "rows": [{"name": row, "parts": spent} for row, spent in rows]},
        table=table,
        rule="Shares are of the confirmation's own runs, times of the mean step at the top."
        if len(rows) > 1
        else "",
    )


def _before_and_after(rows: Sequence[tuple[str, Mapping[str, float]]], names: Sequence[str]) -> Table:
    cells = [_cells(spent) for _, spent in rows]
    return Table(
        ("phase", *(name for name, _ in rows)),
        tuple((name, *(column.get(name, "none seen") for column in cells)) for name in names),
        figures=tuple(range(1, len(rows) + 1)),
    )


def phases_of(content: ReportContent) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield before and after, in the shares of the confirmation's arms; without one, the observation.

    Times are of one basis, the mean step that was observed: the parts add up to the steps that the page shows above.
    """
    sets = [one for one in content.sets if one.phases and all(one.phases)]
    tuning = content.tuning
    if sets and tuning is not None and tuning.plan.steps:
        head = content.headline
        yield "as it was", _adding_up(_middle([one.phases[0] for one in sets]), head.step_before_s)
        yield "with the plan", _adding_up(_middle([one.phases[-1] for one in sets]), head.step_after_s)
        return
    seen = content.observation
    assert seen is not None
    assert seen.step is not None
    yield "mean step", {phase.value: time.share * seen.step.whole_s for phase, time in seen.phases.items()}


def _middle(arms: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for arm in arms for name in arm)
    return {name: median(arm.get(name, 0.0) for arm in arms) for name in names}


def _adding_up(spent: Mapping[str, float], step_s: float | None) -> dict[str, float]:
    """Return parts in the same shares that add up to a step; as they are where none is known."""
    total = sum(spent.values())
    scale = step_s / total if step_s is not None and total else 1.0
    return {name: scale * each for name, each in spent.items()}


def _cells(spent: Mapping[str, float]) -> dict[str, str]:
    """Return time and share of each phase; what is shown adds up to the step, and to 100.0%."""
    times = parts(list(spent.values()), sum(spent.values()))
    said = zip(spent, times, shares(list(spent.values())), strict=True)
    return {name: f"{time} ({share})" for name, time, share in said}


def _said(parts: Mapping[str, float]) -> str:
    total = sum(parts.values())
    largest = sorted(parts.items(), key=lambda item: -item[1])[:3]
    return ", ".join(f"{percent(spent / total)} {name}" for name, spent in largest) if total else NOT_MEASURED


def _series(seen: Observation) -> Iterator[Block]:
    assert seen.step is not None
    if not seen.series:
        return
    first = seen.series[0]
    marked = [
        counted(len(places), word)
        for places, word in (
            (first.epochs, "epoch start"),
            (first.evaluations, "evaluation"),
            (first.checkpoints, "checkpoint"),
        )
        if places
    ]
    yield Chart(
        kind="steps",
        title="Every step, in order",
        summary=f"{counted(first.num, 'step')} of {counted(len(seen.series), 'process', 'processes')}; "
        f"{', '.join(marked) or 'no epoch start, evaluation or checkpoint'} between them.",
        data=step_lines(seen.series),
        table=_stretches(first),
        rule=rule(first.num),
    )
    found = histogram(steady_durations(seen.series))
    if found is not None:
        percentiles = [("p50", seen.step.p50_s), ("p95", seen.step.p95_s), ("p99", seen.step.p99_s)]
        yield Chart(
            kind="distribution",
            title="How step times are distributed",
            summary=", ".join(f"{name} {duration(value)}" for name, value in percentiles)
            + (
                f"; {counted(found['beyond'], 'step lies', 'steps lie')} beyond the right edge"
                if found["beyond"]
                else ""
            ),
            data=found,
            table=Table(
                ("percentile", "step time"),
                tuple((name, duration(value)) for name, value in percentiles),
                figures=(1,),
            ),
        )


def _stretches(series: StepSeries) -> Table:
    """The run in ten stretches: what the picture shows at a glance."""
    stretches = np.array_split(np.frombuffer(series.duration_s, "<f4"), min(NUM_STRETCHES, series.num))
    ends = np.cumsum([len(one) for one in stretches]).tolist()
    rows = (
        (
            f"{end - len(one):,} to {end - 1:,}",
            *(duration(float(value)) for value in (np.nanmedian(one), np.nanmin(one), np.nanmax(one))),
        )
        for end, one in zip(ends, stretches, strict=True)
    )
    return Table(("steps", "median", "shortest", "longest"), tuple(rows), figures=(1, 2, 3))
