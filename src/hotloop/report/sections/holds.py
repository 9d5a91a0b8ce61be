"""The raw samples of a knob that was switched on and off within a process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from hotloop.model.quantities import counted, duration
from hotloop.report.content.content import HeldSteps
from hotloop.report.document import Block, Chart, Table

MAX_SAMPLES = 2000
"""Of one trial; a trial has tens of blocks, and a process some hundred holds."""


def holds(knob: str, held: Sequence[HeldSteps]) -> Iterator[Block]:
    """Yield every hold of the process in which a knob was switched; nothing where the session keeps none."""
    told = [(at, one, median(one.steps_s)) for at, one in enumerate(held) if one.steps_s][:MAX_SAMPLES]
    if not told:
        return
    points: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    for at, one, step_s in told:
        points[knob in one.on].append((at + 1, round(1e3 * step_s, 5)))
    yield Chart(
        kind="holds",
        title="Holds",
        summary=f"The median step of each of {counted(len(told), 'hold')}, {len(points[True])} of them with this knob "
        "on. Other knobs were on and off meanwhile: a regression over all holds tells them apart.",
        data={"with": points[True], "without": points[False]},
    )
    rows = (
        (str(at + 1), " + ".join(one.on) or "nothing", str(len(one.steps_s)), duration(step_s))
        for at, one, step_s in told
    )
    yield Table(("hold", "on", "steps", "median step"), tuple(rows), figures=(0, 2, 3))
