"""Step time against peak memory of everything that was measured, and what training costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotloop.model.goal import Point, Reached
from hotloop.model.quantities import byte_size, counted, duration
from hotloop.model.tuning import TuneResult
from hotloop.report.content.content import ReportContent
from hotloop.report.content.figures import money
from hotloop.report.content.goal_words import goal_sentence
from hotloop.report.document import Block, Facts, More, Note, Section, Table

MAX_POINTS = 5
"""On the first screen, beside the rest of 30 lines."""


def goal(content: ReportContent) -> Section | None:
    """Return the section; None: speed alone was asked for."""
    tuning = content.tuning
    if tuning is None or tuning.goal is None:
        return None
    found = tuning.goal
    blocks: list[Block] = []
    if found.points:
        blocks += [
            table(tuning, found.points),
            Note(
                f"Peaks: {found.method}, the largest of each configuration's sets. Optimal: no other one is as fast "
                "and as small. Only the chosen plan is proven."
            ),
        ]
    rows = tuple(cost_rows(found))
    blocks += [Facts(rows)] if rows else []
    if not blocks:
        return None
    return Section(
        anchor="goal", title="Time against memory", lead=goal_sentence(tuning) or "", blocks=tuple(blocks)
    )


def in_short(result: TuneResult) -> Iterator[Block]:
    """Yield the table and the cost for the first screen: the optimal points alone, unless everything is shown."""
    found = result.goal
    if found is None:
        return
    if found.points:
        best = [one for one in found.points if one.optimal or one.chosen or not one.names]
        shown = table(result, _thinned(best))
        left = len(found.points) - len(shown.rows)
        note = (
            (Note(f"{counted(left, 'more configuration')} measured: --verbose or the report."),)
            if left
            else ()
        )
        yield More((table(result, found.points),), instead=(shown, *note))
        yield More((Facts((("peaks", found.method),)),))
    rows = tuple(cost_rows(found))
    if rows:
        yield Facts(rows)


def table(result: TuneResult, points: Sequence[Point]) -> Table:
    """Return configurations, the largest peak first."""
    original = next((one for one in points if not one.names), None)
    rows = tuple(_row(result, one, original) for one in points)
    return Table(("configuration", "step", "speed", "peak", "sets", ""), rows, figures=(1, 2, 3, 4))


def cost_rows(found: Reached) -> Iterator[tuple[str, str]]:
    """Yield what training costs, before and after."""
    cost = found.cost
    if cost is None:
        return
    after = f", {money(cost.after)} with the plan" if cost.after is not None else ""
    per = f"per {cost.unit}" if cost.unit == "epoch" else f"for {cost.unit}"
    yield "cost", f"{money(cost.before)} {per} as it was{after} ({cost.method})"


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Return so many as there is room for; the original and the chosen one always."""
    kept = [one for one in points if one.chosen or not one.names]
    others = [one for one in points if one not in kept]
    chosen = [*kept, *others[-max(0, MAX_POINTS - len(kept)) :]] if len(kept) < MAX_POINTS else kept
    return [one for one in points if one in chosen]


def _row(result: TuneResult, one: Point, original: Point | None) -> tuple[str, ...]:
    limit = result.aim.fit_bytes
    marks = [
        "chosen" if one.chosen else "",
        "optimal" if one.optimal else "",
        "too large" if limit is not None and one.peak_bytes > limit else "",
    ]
    speed = f"{original.step_s / one.step_s:.2f}x" if original is not None else ""
    name = " + ".join(one.names) or "as it was"
    sets, marked = f"{one.num_sets}", ", ".join(filter(None, marks))
    return name, duration(one.step_s), speed, byte_size(one.peak_bytes), sets, marked
