"""A few steps in detail: a timeline, flame graphs, and the calls by line."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.model.deep import CallSites
from hotloop.model.observation import Observation
from hotloop.model.quantities import duration, percent, significant
from hotloop.report.charts.flame import LEAST, flame
from hotloop.report.content.content import ReportContent
from hotloop.report.document import Block, Chart, Section, Table

MAX_SITES = 15
MAX_SPANS = 3000
_PROCESSES = {"train": "the training thread", "worker": "the loader's workers", "thread": "other threads"}


def timeline(content: ReportContent) -> Section | None:
    """Return the section; None: no step was looked at in detail."""
    seen = content.observation
    blocks = [*_lanes(seen), *_flames(seen), *_sites(seen)] if seen else []
    if not blocks:
        return None
    return Section(
        anchor="timeline",
        title="A few steps in detail",
        lead="Drag or use the slider to zoom; click a box of a flame graph to enlarge it, and its top to go back.",
        blocks=tuple(blocks),
    )


def _lanes(seen: Observation) -> Iterator[Block]:
    lanes = [one for one in seen.series if one.spans]
    if not lanes:
        return
    begin = min(one.spans[0].begin_s for one in lanes)
    names = sorted({span.name for one in lanes for span in one.spans})
    share = MAX_SPANS // len(lanes)
    yield Chart(
        kind="timeline",
        title="The last steady steps",
        summary=f"{len(lanes)} process{'es' * (len(lanes) > 1)}; what the training thread was in, and for how long. "
        "Gaps are your own code between the phases.",
        data={
            "lanes": [f"rank {one.rank}" if one.rank is not None else f"process {one.pid}" for one in lanes],
            "names": names,
            "spans": [
                [
                    lane,
                    round((span.begin_s - begin) * 1e3, 4),
                    round((span.end_s - begin) * 1e3, 4),
                    span.depth,
                    names.index(span.name),
                ]
                for lane, one in enumerate(lanes)
                for span in one.spans[:share]
            ],
        },
        rule=f"The first {share:,} spans of each process are drawn."
        if any(len(one.spans) > share for one in lanes)
        else "",
        height=110 + 62 * len(lanes),
    )


def _flames(seen: Observation) -> Iterator[Block]:
    host = seen.deep.host if seen.deep else None
    if host is None:
        return
    for process, name in _PROCESSES.items():
        found = flame(host, process)
        if found is None:
            continue
        depth = max(box[0] for box in found["boxes"])
        yield Chart(
            kind="flame",
            title=f"Where {name} spend their time"
            if process != "train"
            else "Where the training thread spends its time",
            summary=f"Python stacks sampled every {duration(host.interval_s)}{_over(host.num_steps)}; "
            f"{duration(found['total'])} in all.",
            data=found,
            table=_lines(seen, process),
            rule=f"Boxes narrower than {percent(LEAST)} of the whole are left out.",
            height=min(720, 40 + 19 * (depth + 1)),
        )


def _over(num_steps: int | None) -> str:
    return "" if num_steps is None else f" over {num_steps} steps"


def _lines(seen: Observation, process: str) -> Table | None:
    host = seen.deep.host if seen.deep else None
    found = [one for one in host.lines if one.process == process][:MAX_SITES] if host else []
    if not found:
        return None
    return Table(
        ("line", "function", "phase", "share"),
        tuple((f"{one.path}:{one.line}", one.function, one.phase or "", percent(one.share)) for one in found),
        caption="The most expensive lines of your program",
        figures=(3,),
    )


def _sites(seen: Observation) -> Iterator[Block]:
    found: CallSites | None = seen.deep.call_sites if seen.deep else None
    if found is None or not found.sites:
        return
    yield Table(
        ("line", "call", "kind", "a step", "time a step"),
        tuple(
            (
                f"{one.path}:{one.line}",
                one.call,
                one.kind,
                significant(one.count_per_step),
                f"{duration(one.time_per_step_s)} [{duration(one.low_s)}, {duration(one.high_s)}]",
            )
            for one in found.sites[:MAX_SITES]
        ),
        caption=f"Synchronizations, copies and creations of tensors by line, over {found.num_steps} steps",
        figures=(3, 4),
    )
