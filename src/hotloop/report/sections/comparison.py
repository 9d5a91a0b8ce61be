"""A comparison as a document: which is faster, phase by phase, and what differs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hotloop import __version__
from hotloop.model.comparison import Comparison, PhaseChange, Side
from hotloop.model.observation import Phase
from hotloop.model.quantities import byte_size, duration
from hotloop.report.cleaned import cleaned
from hotloop.report.content.figures import NOT_MEASURED, speedup
from hotloop.report.document import Block, Chart, Code, Document, Facts, Section, Table, Tile

_SAYS = {
    "faster": "{after} is faster than {before}: {ratio}.",
    "slower": "{after} is slower than {before}: {ratio}.",
    "same": "{after} is as fast as {before}: {ratio}, within what counts.",
    "inconclusive": "No difference between {before} and {after} was proven: {ratio}.",
    "invalid": "{before} and {after} cannot be compared: {reason}.",
}

_LOOKS = "{{after}} looks {way} than {{before}}, {{ratio}}, and too little was measured to prove it."


def comparison_document(found: Comparison) -> Document:
    """Return the document; what its strings hold is safe to show."""
    return cleaned(
        Document(
            title=f"{_title(found.before)} | {_title(found.after)}",
            subtitle=found.method,
            verdict=_verdict(found),
            good={"faster": True, "same": True, "slower": False}.get(found.verdict),
            tiles=tuple(_tiles(found)),
            sections=tuple(_sections(found)),
            footer=f"hotloop {__version__}. This page is one file and loads nothing.",
        )
    )


def _title(side: Side) -> str:
    return side.name if side.name == shlex.join(side.command) else f"{side.name}: {shlex.join(side.command)}"


def _verdict(found: Comparison) -> str:
    ratio = speedup(found.ratio) if found.ratio else NOT_MEASURED
    said = _SAYS[found.verdict]
    if found.verdict == "inconclusive" and found.ratio is not None and found.ratio.low > 1:
        said = _LOOKS.format(way="faster")
    elif found.verdict == "inconclusive" and found.ratio is not None and found.ratio.high < 1:
        said = _LOOKS.format(way="slower")
    return said.format(before=found.before.name, after=found.after.name, ratio=ratio, reason=found.reason)


def _tiles(found: Comparison) -> Iterator[Tile]:
    if found.ratio is not None:
        value, interval = speedup(found.ratio).split(" ", 1)
        good = {"faster": True, "slower": False}.get(found.verdict)
        yield Tile(name="speed of the second", value=value, detail=f"95% interval {interval}", good=good)
    for name, side in (("a step of the first", found.before), ("a step of the second", found.after)):
        yield Tile(name=name, value=duration(side.step_s) if side.step_s else NOT_MEASURED, detail="median")


def _sections(found: Comparison) -> Iterator[Section]:
    blocks: list[Block] = []
    if found.phases:
        blocks.append(_phases(found))
    blocks.append(Facts(tuple(_facts(found))))
    yield Section(anchor="step", title="Phase by phase", lead=f"{found.reason}.", blocks=tuple(blocks))
    yield Section(anchor="changes", title="What differs", lead=_changed(found), blocks=tuple(_changes(found)))
    if found.rounds:
        yield Section(anchor="trials", title="Raw samples", lead="", blocks=(_samples(found),))


def _phases(found: Comparison) -> Chart:
    names = [phase.value for phase in Phase if phase.value in found.phases]
    sides = ((found.before.name, "before_s"), (found.after.name, "after_s"))
    rows = [
        {"name": name, "parts": {one: getattr(found.phases[one], field) or 0.0 for one in names}}
        for name, field in sides
    ]
    return Chart(
        kind="phases",
        title="A step by phase",
        summary=f"{found.before.name}, then {found.after.name}.",
        data={"phases": names, "rows": rows},
        table=Table(
            ("phase", "first", "second", "speed of the second"),
            tuple((name, *_cells(found.phases[name])) for name in names),
            figures=(1, 2, 3),
        ),
        height=210,
    )


def _cells(change: PhaseChange) -> tuple[str, str, str]:
    before, after = (
        duration(one) if one is not None else "none seen" for one in (change.before_s, change.after_s)
    )
    return before, after, speedup(change.ratio) if change.ratio else "not told apart"


def _facts(found: Comparison) -> Iterator[tuple[str, str]]:
    before, after = (
        byte_size(side.peak_bytes) if side.peak_bytes is not None else NOT_MEASURED
        for side in (found.before, found.after)
    )
    yield "peak memory", f"{before} and {after}"
    yield "method", found.method


def _changed(found: Comparison) -> str:
    num = len(found.changes) + (1 if found.code else 0)
    if found.code is None:
        return (
            "Whether the code differs is not known: a side was not measured in a Git repository that is here."
        )
    return "Nothing that was recorded differs." if not num else ""


def _changes(found: Comparison) -> Iterator[Block]:
    if found.code:
        yield Code("\n".join(found.code), "git")
    if found.changes:
        rows = tuple((one.what, one.before, one.after) for one in found.changes)
        yield Table(("what", "first", "second"), rows)


def _samples(found: Comparison) -> Chart:
    pairs = [[round(before / after, 4) for before, after in rounds] for rounds in found.rounds]
    return Chart(
        kind="blocks",
        title="Blocks in turns",
        summary=f"{sum(map(len, pairs))} blocks of {len(pairs)} pairs; above 1 the second is faster.",
        data={"pairs": pairs},
        height=200,
    )
