"""Memory, before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hotloop.model.observation import Observation
from hotloop.model.operators import bare_name
from hotloop.model.quantities import byte_size
from hotloop.model.tuning import TuneResult
from hotloop.report.content.content import ReportContent
from hotloop.report.content.device_memory import device_memory
from hotloop.report.content.figures import NOT_MEASURED
from hotloop.report.content.tree_memory import counted_as, tree_told
from hotloop.report.document import Block, Chart, Facts, Section, Table
from hotloop.report.sections.memory_account import peak_tables
from hotloop.report.sections.step_memory import step_memory

MAX_ROWS = 10
_OVER_TIME = "program_memory_bytes"
_DEVICE = "gpu_memory_used_bytes"


def memory(content: ReportContent) -> Section | None:
    """Return the section; None: there is no observation."""
    seen = content.observation
    if seen is None:
        return None
    rows = list(_confirmed(content.tuning)) if content.tuning and content.tuning.plan.steps else []
    rows += [("peak, observed", _size(seen.memory.peak_bytes)), ("measured as", seen.memory.method)]
    together = tree_told(seen.memory.tree)
    if together is not None:
        rows.append(("of all processes", together))
    rows += [("beside the tensors", told) for told in device_memory(seen.memory)]
    first, last = (deep.memory if deep else None for deep in (seen.deep, content.after))
    blocks: list[Block] = [
        Facts(tuple(rows)),
        *(peak_tables(seen.memory.account) if seen.memory.account is not None else ()),
        *step_memory(first, last),
        *_over_time(seen),
        *_by_operator(seen),
    ]
    return Section(anchor="memory", title="Memory", lead=_lead(content.tuning), blocks=tuple(blocks))


def _size(num: int | None) -> str:
    return NOT_MEASURED if num is None else byte_size(num)


def _confirmed(found: TuneResult) -> Iterator[tuple[str, str]]:
    before, after = found.tree_peak
    if before is not None and after is not None:
        sizes = f"{byte_size(before.peak_bytes)} and {byte_size(after.peak_bytes)} ({counted_as(after)})"
        yield "all processes, original and plan, confirmed", sizes
    peaks = " and ".join(map(_size, found.peak_bytes))
    yield "peak of the process that holds most, original and plan, confirmed", peaks


def _lead(found: TuneResult | None) -> str:
    """Say what the plan makes of the memory of all processes; of the largest where no more was measured."""
    before, after = found.peak_bytes if found else (None, None)
    tree = [one.peak_bytes for one in (found.tree_peak if found else ()) if one is not None]
    if len(tree) == 2:
        before, after = tree
    if before is None or after is None:
        return ""
    if byte_size(before) == byte_size(after):
        return f"The peak stayed at {byte_size(before)}."
    return f"The peak went from {byte_size(before)} to {byte_size(after)}, {after / before - 1:+.0%}."


def _over_time(seen: Observation) -> Iterator[Block]:
    monitors = seen.monitors
    names = [
        name for name in (monitors.metrics if monitors else {}) if name.startswith((_OVER_TIME, _DEVICE))
    ]
    if monitors is None or not names:
        return
    yield Chart(
        kind="lines",
        title="Memory over the run",
        summary=f"One sample every {monitors.interval_s:g} s, of what the training process shares with no file and no "
        f"other process{', and of its devices' if len(names) > 1 else ''}; the steady steps are shaded.",
        data={
            "x": [round(time, 2) for time in monitors.times_s],
            "unit": "MiB",
            "lines": [
                {
                    "name": "training process" if name == _OVER_TIME else name,
                    "y": [
                        None if one is None else round(one / (1 << 20), 1)
                        for one in monitors.metrics[name].samples
                    ],
                }
                for name in names
            ],
            "shaded": [monitors.begin_s, monitors.end_s],
            "axis": "seconds since the command was started",
        },
        table=Table(
            ("of", "mean", "largest"),
            tuple(
                (
                    "training process" if name == _OVER_TIME else name,
                    *(byte_size(round(size)) for size in (one.mean, one.max)),
                )
                for name, one in monitors.metrics.items()
                if name in names
            ),
            caption="Memory in the steady steps",
            figures=(1, 2),
        ),
    )


def _by_operator(seen: Observation) -> Iterator[Block]:
    found = seen.deep.operators if seen.deep else None
    allocated: Counter[str] = Counter()  # one name has a row for each of its shapes
    for one in found.operators if found else ():
        allocated[bare_name(one.name)] += round(one.allocated_bytes)
    rows = tuple((name, byte_size(num)) for name, num in allocated.most_common(MAX_ROWS) if num > 0)
    if rows:
        yield Table(
            ("operator", "allocated a step"),
            rows,
            caption="What operators allocate, freed later or not",
            figures=(1,),
        )
