"""All sections in order, as one document."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from hotloop import __version__
from hotloop.model.quantities import byte_size, duration, percent, rate
from hotloop.model.tuning import TuneResult
from hotloop.report.content.busy_machine import busy_tile
from hotloop.report.content.content import ReportContent, Savings
from hotloop.report.content.figures import NOT_MEASURED, long_duration, money, speedup
from hotloop.report.document import Document, Section, Tile
from hotloop.report.sanitize import cleaned
from hotloop.report.sections.ceilings import ceilings
from hotloop.report.sections.findings import findings
from hotloop.report.sections.goal import goal
from hotloop.report.sections.memory import memory
from hotloop.report.sections.method import coverage, method
from hotloop.report.sections.out_of_memory import out_of_memory
from hotloop.report.sections.parity import parity
from hotloop.report.sections.patch import patch
from hotloop.report.sections.plan import plan
from hotloop.report.sections.step import step
from hotloop.report.sections.timeline import timeline
from hotloop.report.sections.trials import predictions, trials


def failed(content: ReportContent) -> Section | None:
    """Return what held the memory that the program ran out of; None: it did not."""
    return out_of_memory(content.observation) if content.observation is not None else None


ALL = (
    failed, plan, goal, step, findings, parity, patch, ceilings, memory, timeline, predictions, trials, method,
    coverage,
)  # fmt: skip
"""In the order of the questions: what do I change, where does the time go, why, is it safe, show me."""


def document(content: ReportContent) -> Document:
    """Return the report of one session; what its strings hold is safe to show."""
    return cleaned(_document(content))


def _document(content: ReportContent) -> Document:
    found = [_made(make, content) for make in ALL]
    head = content.headline
    return Document(
        title=_title(content),
        subtitle=_subtitle(content),
        verdict=head.sentence,
        good=None
        if content.tuning is None
        else head.speedup is not None and head.learns_the_same is not False,
        tiles=tuple(_tiles(content)),
        sections=tuple(section for section in found if isinstance(section, Section)),
        footer=f"hotloop {__version__}, session {content.session}. This page is one file and loads nothing.",
    )


def _made(make: Callable[[ReportContent], Section | None], content: ReportContent) -> Section | None:
    """Return a section; one that cannot be made of what a session holds takes none of the others with it."""
    try:
        return make(content)
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        lead = f"This section could not be built from the session ({type(error).__name__}: {error})."
        return Section(anchor=make.__name__, title=make.__name__.capitalize(), lead=lead, blocks=())


def _title(content: ReportContent) -> str:
    words = (
        content.origin.words if content.origin else content.observation.command if content.observation else ()
    )
    return shlex.join(words) or content.session


def _subtitle(content: ReportContent) -> str:
    machine = content.observation.machine if content.observation else {}
    devices = [str(one.get("name")) for one in machine.get("accelerators", ()) if isinstance(one, dict)]
    where = ", ".join(devices) or machine.get("cpu_model")
    parts = [content.origin.began[:16].replace("T", " ") if content.origin else "", str(where or "")]
    program = content.observation.program if content.observation else None
    if program is not None and program.torch_version:
        parts.append(f"torch {program.torch_version}")
    return " · ".join(part for part in parts if part)


def _tiles(content: ReportContent) -> Iterator[Tile]:
    head, seen = content.headline, content.observation
    if content.tuning is not None:
        yield from _smaller(content.tuning)
    if head.speedup is not None:
        value, interval = speedup(head.speedup).split(" ", 1)
        faster = head.speedup.low > 1  # where memory is the goal it need not be
        yield Tile(
            name="confirmed speed-up" if faster else "speed",
            value=value,
            detail=f"95% interval {interval}",
            good=True if faster else None,
        )
    if head.step_before_s is not None:
        after = head.step_after_s
        if after is not None:
            yield Tile(
                name="a step", value=duration(after), detail=f"mean; was {duration(head.step_before_s)}"
            )
        else:
            yield Tile(name="a step", value=duration(head.step_before_s), detail="mean")
    if content.savings is not None and content.savings.low_s > 0:
        yield _saved(content.savings)
        if content.savings.money is not None:
            unit = _unit(content.savings)
            yield Tile(
                name="money saved",
                value=money(content.savings.money),
                detail=f"per {unit}, in your currency",
            )
        if content.savings.energy_kwh is not None:
            yield Tile(
                name="energy saved",
                value=f"{1000 * content.savings.energy_kwh:.3g} Wh",
                detail=f"per {_unit(content.savings)}, at the power that was measured",
            )
    if content.tuning is not None and head.speedup is not None:
        same = head.learns_the_same
        said = NOT_MEASURED if same is None else "the same" if same else "not the same"
        yield Tile(name="learning", value=said, detail="loss on the same batches", good=same)
    if content.tuning is None and seen is not None:
        yield from _observed(content)
    elif content.bottleneck is not None and head.speedup is not None:
        was = content.bottleneck
        yield Tile(name="bottleneck before", value=was.kind, detail=f"{percent(was.share)} of the time")
    if seen is not None:
        yield from busy_tile(seen.foreign_share)


def _smaller(tuning: TuneResult) -> Iterator[Tile]:
    """Yield the peak that was proven to be smaller, where memory was what counts."""
    found = tuning.goal
    if found is None or found.memory is None or None in found.peak_bytes:
        return
    before, after = (byte_size(one) for one in found.peak_bytes if one is not None)
    less, low, high = (1 - 1 / one for one in (found.memory.ratio, found.memory.low, found.memory.high))
    yield Tile(
        name="less memory at the peak",
        value=f"{less:.0%}",
        detail=f"95% interval [{low:.0%}, {high:.0%}]; {after}, was {before}",
        good=found.memory.ratio > 1,
    )


def _observed(content: ReportContent) -> Iterator[Tile]:
    seen = content.observation
    assert seen is not None
    if seen.step is not None and seen.step.samples_per_s is not None:
        yield Tile(name="samples a second", value=rate(seen.step.samples_per_s))
    if content.bottleneck is not None:
        found = content.bottleneck
        yield Tile(name="held back by", value=found.kind, detail=f"{percent(found.share)} of the time")
    peak = seen.memory.peak_bytes
    yield Tile(name="peak memory", value=NOT_MEASURED if peak is None else byte_size(peak))


def _unit(saved: Savings) -> str:
    return f"epoch of {saved.num_steps:,} steps" if saved.per_epoch else f"{saved.num_steps:,} steps"


def _saved(saved: Savings) -> Tile:
    return Tile(
        name="time saved",
        value=long_duration(saved.saved_s),
        detail=f"per {_unit(saved)} [{long_duration(saved.low_s)}, {long_duration(saved.high_s)}]",
    )
