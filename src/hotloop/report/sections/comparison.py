"""A comparison as a document: which is faster, phase by phase, and what differs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from statistics import median

from hotloop import __version__
from hotloop.model.comparison import Comparison, PhaseChange, Side, TunedSide
from hotloop.model.observation import Phase
from hotloop.model.quantities import byte_size, counted, duration
from hotloop.report.content.busy_machine import busy_tile
from hotloop.report.content.figures import NOT_MEASURED, as_fast, speedup
from hotloop.report.content.tree_memory import tree_told
from hotloop.report.document import Block, Chart, Code, Document, Facts, Section, Table, Tile
from hotloop.report.sanitize import cleaned
from hotloop.stats.quietness import is_too_busy

_SAYS = {
    "faster": "{after} is faster than {before}: {as_fast}.",
    "slower": "{after} is slower than {before}: {as_fast}.",
    "same": "{after} is as fast as {before}: {ratio}, too near to 1 to count.",
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
            good=None
            if is_too_busy(found.foreign_share)
            else {"faster": True, "same": True, "slower": False}.get(found.verdict),
            tiles=tuple(_tiles(found)),
            sections=tuple(_sections(found)),
            footer=f"hotloop {__version__}. This page is one file and loads nothing.",
        )
    )


def _title(side: Side) -> str:
    return side.name if side.name == shlex.join(side.command) else f"{side.name}: {shlex.join(side.command)}"


def _verdict(found: Comparison) -> str:
    per = _per(found, " ")
    ratio = f"{speedup(found.ratio)}{per}" if found.ratio else NOT_MEASURED
    said = _SAYS[found.verdict]
    if found.verdict == "inconclusive" and found.ratio is not None and found.ratio.low > 1:
        said = _LOOKS.format(way="faster")
    elif found.verdict == "inconclusive" and found.ratio is not None and found.ratio.high < 1:
        said = _LOOKS.format(way="slower")
    busy = (
        f"This machine was too busy to judge: other processes used {found.foreign_share:.0%} of the CPU. As measured: "
        if is_too_busy(found.foreign_share)
        else ""
    )
    return busy + said.format(
        before=found.before.name,
        after=found.after.name,
        ratio=ratio,
        as_fast=f"{as_fast(found.ratio)}{per}" if found.ratio else NOT_MEASURED,
        reason=found.reason,
    )


def _per(found: Comparison, before: str = ", ") -> str:
    """Say what a ratio is of, where it is not the step that the times beside it are of."""
    return f"{before}per {found.per}" if found.per != "step" else ""


def _tiles(found: Comparison) -> Iterator[Tile]:
    if found.ratio is not None:
        value, interval = speedup(found.ratio).split(" ", 1)
        good = {"faster": True, "slower": False}.get(found.verdict)
        name = f"speed of the second{_per(found)}"
        yield Tile(name=name, value=value, detail=f"95% interval {interval}", good=good)
    for name, side in (("a step of the first", found.before), ("a step of the second", found.after)):
        yield Tile(name=name, value=duration(side.step_s) if side.step_s else NOT_MEASURED, detail="median")
    yield from busy_tile(found.foreign_share)


def _sections(found: Comparison) -> Iterator[Section]:
    blocks: list[Block] = []
    if found.phases:
        blocks.append(_phases(found))
    blocks.append(Facts(tuple(_facts(found))))
    yield Section(anchor="step", title="Phase by phase", lead=f"{found.reason}.", blocks=tuple(blocks))
    if any(found.tuned):
        yield Section(
            anchor="plan",
            title="What was found",
            lead="Each speed-up is against that session's own program as it was, which the step above is of.",
            blocks=(_tuned(found),),
        )
    yield Section(anchor="changes", title="What differs", lead=_changed(found), blocks=tuple(_changes(found)))
    if found.rounds:
        yield Section(anchor="trials", title="Raw samples", lead="", blocks=(_samples(found),))


def _tuned(found: Comparison) -> Table:
    names = dict.fromkeys(name for side in found.tuned if side is not None for name in side.steps)
    rows = [("the plan, confirmed", *(_confirmed(side) for side in found.tuned))]
    rows += [(name, *(_step(side, name) for side in found.tuned)) for name in names]
    rows.append(("learning", *(_learning(side) for side in found.tuned)))
    return Table(("speed-up", "first", "second"), tuple(rows), figures=(1, 2))


def _confirmed(side: TunedSide | None) -> str:
    if side is None:
        return "not tuned"
    return speedup(side.speedup) if side.speedup is not None else "nothing was proven to help"


def _step(side: TunedSide | None, name: str) -> str:
    if side is None:
        return "not tuned"
    return speedup(side.steps[name]) if name in side.steps else "not in the plan"


def _learning(side: TunedSide | None) -> str:
    if side is None or side.learns_the_same is None:
        return NOT_MEASURED
    return "the same" if side.learns_the_same else "not the same"


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
            ("phase", "first", "second", f"speed of the second{_per(found)}"),
            tuple((name, *_cells(found.phases[name])) for name in names),
            figures=(1, 2, 3),
        ),
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
    trees = [tree_told(side.tree) for side in (found.before, found.after)]
    if all(trees):
        yield "of all processes", f"{trees[0]}, then {trees[1]}"
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
    pairs = [[round(found.scale * before / after, 4) for before, after in rounds] for rounds in found.rounds]
    return Chart(
        kind="blocks",
        title="Blocks in turns",
        summary=f"{sum(map(len, pairs))} blocks of {counted(len(pairs), 'pair')}; above 1 the second is faster.",
        data={"pairs": pairs},
        table=Table(
            ("pair", "blocks", "median", "smallest", "largest"),
            tuple(
                (
                    str(at + 1),
                    str(len(one)),
                    *(f"{value:.3f}x" for value in (median(one), min(one), max(one))),
                )
                for at, one in enumerate(pairs)
                if one
            ),
            figures=(1, 2, 3, 4),
        ),
    )
