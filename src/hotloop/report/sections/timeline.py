"""A few steps in detail: a timeline, flame graphs, and the calls by line."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.deep import CallSites, Deep
from hotloop.model.observation import Observation
from hotloop.model.quantities import counted, duration, percent
from hotloop.model.step_series import StepSeries
from hotloop.report.charts.flame import LEAST, flame, flame_of_calls
from hotloop.report.charts.lanes import Lane, lanes, of_timeline
from hotloop.report.content.content import ReportContent
from hotloop.report.document import Block, Chart, Section, Table
from hotloop.report.sections.lines import call_sites, host_lines, loading

MAX_SPANS = 3000
_PROCESSES = {"train": "the training thread", "worker": "the loader's workers", "thread": "other threads"}


def timeline(content: ReportContent) -> Section | None:
    """Return the section; None: no step was looked at in detail."""
    seen = content.observation
    after = content.after
    blocks = [*_steady(seen), *_detailed(seen.deep, ""), *_detailed(after, ", with the plan")] if seen else []
    blocks += [*_flames(seen), *_sites(seen)] if seen else []
    if seen is not None and seen.deep is not None and seen.deep.loading is not None:
        blocks += loading(seen.deep.loading)
    if not blocks:
        return None
    return Section(
        anchor="timeline",
        title="A few steps in detail",
        lead="Enlarge a picture with + and scroll it sideways; click a box of a flame graph to enlarge that.",
        blocks=tuple(blocks),
    )


def _steady(seen: Observation) -> Iterator[Block]:
    processes = [one for one in seen.series if one.spans]
    if not processes:
        return
    share = MAX_SPANS // len(processes)
    data = lanes(Lane(_process(one), "phases", one.spans[:share]) for one in processes)
    yield Chart(
        kind="timeline",
        title="The last steady steps",
        summary=f"{counted(len(processes), 'process', 'processes')}; what the training thread was in, and for how "
        "long. Gaps are your own code between phases.",
        data=data,
        rule=f"The first {share:,} spans of each process are drawn."
        if any(len(one.spans) > share for one in processes)
        else "",
    )


def _process(one: StepSeries) -> str:
    return f"rank {one.rank}" if one.rank is not None else f"process {one.pid}"


def _detailed(deep: Deep | None, when: str) -> Iterator[Block]:
    operators = deep.operators if deep else None
    found = operators.timeline if operators else None
    if found is None or not found.lanes:
        return
    drawn = list(of_timeline(found))
    busy = [(lane.name, one.busy_s) for lane, one in zip(drawn, found.lanes, strict=True)]
    kept = sum(len(one.spans) for one in found.lanes if one.kind in {"operators", "device"})
    data = lanes(drawn)
    yield Chart(
        kind="timeline",
        title=f"Operators, device streams and loader workers{when}",
        summary=f"{duration(found.window_s)} of the leading process under the profiler, which makes steps longer. "
        + "; ".join(f"{name} {percent(spent / found.window_s)} busy" for name, spent in busy)
        + ".",
        data=data,
        table=Table(
            ("lane", "busy", "share of the time"),
            tuple((name, duration(spent), percent(spent / found.window_s)) for name, spent in busy),
            figures=(1, 2),
        ),
        rule=f"The {kept:,} longest of {found.num_spans:,} operators are drawn."
        if kept < found.num_spans
        else "",
    )


def _flames(seen: Observation) -> Iterator[Block]:
    host = seen.deep.host if seen.deep else None
    if host is None:
        return
    for process, name in _PROCESSES.items():
        found = flame(host, process)
        if found is None:
            continue
        yield Chart(
            kind="flame",
            title=f"Where {name} spend their time"
            if process != "train"
            else "Where the training thread spends its time",
            summary=f"Python stacks sampled every {duration(host.interval_s)}{_over(host.num_steps)}; "
            f"{duration(found['total'])} in all.",
            data=found,
            table=host_lines(host, process),
            rule=f"Boxes narrower than {percent(LEAST)} of the whole are left out.",
        )


def _over(num_steps: int | None) -> str:
    return "" if num_steps is None else f" over {num_steps} steps"


def _sites(seen: Observation) -> Iterator[Block]:
    found: CallSites | None = seen.deep.call_sites if seen.deep else None
    if found is None or not found.sites:
        return
    drawn = flame_of_calls(found)
    if drawn is not None:
        yield Chart(
            kind="flame",
            title="What synchronizations, copies and creations of tensors cost",
            summary=f"{duration(drawn['total'])} a step in all, by kind, file, line and call.",
            data=drawn,
            rule=f"Boxes narrower than {percent(LEAST)} of the whole are left out.",
        )
    table = call_sites(found)
    if table is not None:
        yield table
