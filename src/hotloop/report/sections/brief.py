"""A session in short, for a comment on a pull request: the result, its intervals, and how it was measured."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hotloop.model.finding import Finding
from hotloop.model.quantities import counted, duration
from hotloop.report.content.busy_machine import busy_machine
from hotloop.report.content.content import ReportContent
from hotloop.report.content.finding_filter import SHOWN, gain, worth_showing
from hotloop.report.content.places import place
from hotloop.report.content.ratios import told_gain
from hotloop.report.document import Block, Document, Facts, Section, Table
from hotloop.report.sanitize import cleaned
from hotloop.report.sections.all import document
from hotloop.report.sections.ceilings import limits
from hotloop.report.sections.step_tables import phases_table
from hotloop.report.sections.tuned import tuned


def brief(content: ReportContent) -> Document:
    """Return the document; what its strings hold is safe to show."""
    whole = document(content)
    if content.tuning is not None:
        short = cleaned(tuned(content.tuning))
        return msgspec.structs.replace(
            whole, verdict=short.verdict, warnings=short.warnings, tiles=(), sections=short.sections
        )
    seen = content.observation
    warnings = busy_machine(seen.foreign_share) if seen is not None and seen.step is not None else ()
    section = Section(anchor="", title="", blocks=cleaned(tuple(_blocks(content))))
    return msgspec.structs.replace(whole, warnings=warnings, tiles=(), sections=(section,))


def _blocks(content: ReportContent) -> Iterator[Block]:
    seen = content.observation
    if seen is None or seen.step is None:
        return
    yield Facts((("step", f"{duration(seen.step.whole_s)}, the mean of {counted(seen.step.num, 'step')}"),))
    yield from limits(seen)
    yield phases_table(seen, seen.step)
    worth = worth_showing(content.findings, seen.foreign_share)[:SHOWN]
    if worth:
        rows = tuple(_finding(one) for one in worth)
        yield Table(("finding", "where", "costs a step", "predicted gain"), rows, figures=(2,))


def _finding(one: Finding) -> tuple[str, ...]:
    costs = "" if one.cost_s is None else duration(one.cost_s)
    return (
        f"{one.title} ({one.code})",
        place(one),
        costs,
        told_gain(one.gain) if gain(one) and one.gain else "",
    )
