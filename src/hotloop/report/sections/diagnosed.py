"""A diagnosis in short: the first screen of `diagnose`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hotloop.model.diagnosis import Diagnosis
from hotloop.model.observation import NO_TIME, Observation
from hotloop.model.quantities import counted, duration, listed
from hotloop.report.content.busy_machine import busy_machine
from hotloop.report.content.finding_filter import SHOWN, worth_showing
from hotloop.report.document import Block, Document, Facts, More, Note, Section
from hotloop.report.sections.ceilings import limits
from hotloop.report.sections.findings import finding
from hotloop.report.sections.out_of_memory import out_of_memory
from hotloop.report.sections.step_tables import batches
from hotloop.stats.quietness import is_too_busy

CEILINGS = ("ceilings and predictions",)
"""Told by a second run, as usual: no word of it."""


def diagnosed(diagnosis: Diagnosis) -> Document:
    """Return what holds the program back, what it could reach, and the findings that matter most."""
    seen = diagnosis.observation
    if diagnosis.bottleneck is None:
        why = seen.why_no_step
        verdict, groups = f"No step was measured{f': {why}' if why else ''}.", []
    else:
        said = diagnosis.bottleneck.sentence
        verdict = f"{said[0].upper()}{said[1:]}{' (as measured here)' * is_too_busy(seen.foreign_share)}."
        groups = [tuple(_limits(diagnosis)), tuple(_findings(diagnosis))]
    failed = out_of_memory(seen)
    return Document(
        title="",
        subtitle="",
        warnings=busy_machine(seen.foreign_share) if diagnosis.bottleneck else (),
        verdict=verdict if failed is None else failed.lead,
        good=None,
        tiles=(),
        sections=(
            *((msgspec.structs.replace(failed, lead=""),) if failed is not None else ()),
            *(Section(anchor="", title="", blocks=blocks) for blocks in groups if blocks),
        ),
        footer="",
    )


def _limits(diagnosis: Diagnosis) -> Iterator[Block]:
    seen = diagnosis.observation
    if seen.step is not None:
        yield Facts(
            (("step", f"{duration(seen.step.whole_s)}, the mean of {counted(seen.step.num, 'step')}"),)
        )
    yield from limits(seen)
    if seen.inference is not None:
        yield from batches(seen.inference)


def _findings(diagnosis: Diagnosis) -> Iterator[Block]:
    command = diagnosis.observation.command
    worth = worth_showing(diagnosis.findings, diagnosis.observation.foreign_share)[:SHOWN]
    rest = [one for one in diagnosis.findings if one not in worth]
    yield from (finding(one, command) for one in worth)
    more = [finding(one, command) for one in rest]
    abstained = tuple((one.code, one.needs) for one in diagnosis.abstained)
    silent = [Note("Rules that lacked data, and the data they need", "strong"), Facts(abstained)]
    yield More(
        (*more, Note(_summary(diagnosis, len(diagnosis.findings))), *(silent if abstained else ())),
        instead=(Note(_summary(diagnosis, len(worth))),),
    )
    yield from _what_it_is_of(diagnosis.observation)


def _what_it_is_of(seen: Observation) -> Iterator[Block]:
    """Say what had no time, and which run of the program told what, where the first one did not tell all."""
    for gap in seen.coverage:
        if NO_TIME in gap.why:
            yield Note(f"Not looked at: {gap.what.replace('_', ' ')}: {gap.why}.")
    if len([run for run in seen.runs if run.told]) > 1 and seen.runs[1].told != CEILINGS:
        told = (
            f"run {number}: {listed(run.told)}" for number, run in enumerate(seen.runs, start=1) if run.told
        )
        yield Note(f"From {'; '.join(told)}.".replace("_", " "))


def _summary(diagnosis: Diagnosis, num_shown: int) -> str:
    num, silent = len(diagnosis.findings), len(diagnosis.abstained)
    if not num:
        found = "No rule found a cause"
    elif not num_shown:
        found = f"No finding worth acting on ({counted(num, 'small finding')}: --verbose)"
    elif num > num_shown:
        found = f"{num_shown} of {counted(num, 'finding')} shown: --verbose lists all"
    else:
        found = counted(num, "finding")
    rest = f"; {counted(silent, 'rule')} lacked data" if silent else ""
    return f"{found}{rest}."
