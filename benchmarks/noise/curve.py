"""How well two arms are compared in a given time, by the length of their blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.stats.recorded import RecordedMachine, load, recorded

Array = npt.NDArray[np.float64]
Average = Callable[[Array], np.floating[Any]]
TOTAL_S = 8.0
"""Of both arms together."""
BLOCKS_S = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""0: one step."""
DRAWS = 200
AVERAGES: dict[str, Average] = {"mean": np.mean, "median": np.median}
CONCLUSION = """\
**Which grain.** Alternate every 0.05 to 0.1 s (one step, where steps are longer), not every 0.8 s, and compare
median steps where the rhythm allows it. In 8 s of two equal arms on the quiet machine, medians in turns of 0.05 s
scatter by 0.7 to 1.5% (sd), in turns of 0.8 s by 2.4 to 8.3%; means by 1.1 to 6.3% and 3.2 to 9.3%. Between others
that come and go the same step from 0.8 s to 0.05 s is worth a factor of 2 to 10, and medians of short steps another
factor of 2 to 20. Beside one busy neighbour, waiting passively, medians in turns of 0.05 s scatter by 1 to 9%. What
turns cannot take out is the difference between two processes of the same program: 0 to 13% here, quiet."""
CONDITIONS = ("quiet", "crowded", "busy, passive", "busy")


def page() -> Iterator[str]:
    """The curves as Markdown."""
    yield from (CONCLUSION, "")
    yield f"""Standard deviation, in percent, of log(time of A / time of B) where A and B are the same and share
{TOTAL_S:g} s in blocks A B B A. Recorded steps, from {DRAWS} random moments on; what a switch itself costs is not in
it, nor what sets two processes apart for as long as they live (below). 'mean' compares the arms' mean steps, 'median'
their median ones."""
    for condition in CONDITIONS:
        programs = recorded(condition)
        if programs:
            yield from ("", f"## {condition}", "", *_table(condition, programs))
    yield from ("", "## Two identical processes", "", *_pairs())


def _table(condition: str, programs: list[str]) -> Iterator[str]:
    names = " | ".join("one step" if not block else f"{block:g} s" for block in BLOCKS_S)
    yield f"| program (step) | by | {names} |"
    yield "|---|---|" + "---|" * len(BLOCKS_S)
    for program in programs:
        machine = RecordedMachine(np.random.default_rng(0), program, condition)
        for name, average in AVERAGES.items():
            cells = " | ".join(f"{_scatter(program, condition, block, average):.1f}" for block in BLOCKS_S)
            yield f"| {program} ({1000 * machine.step_s:.0f} ms) | {name} | {cells} |"


def _scatter(program: str, condition: str, block_s: float, average: Average) -> float:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(DRAWS):
        machine = RecordedMachine(rng, program, condition)
        num = max(4, round(TOTAL_S / machine.step_s))
        block = max(1, round(block_s / machine.step_s))
        steps = machine.steps(num)
        first = ((np.arange(num) // block + 1) // 2) % 2 == 0
        if first.all() or not first.any():
            return float("nan")
        found.append(np.log(average(steps[first]) / average(steps[~first])))
    return 100 * float(np.std(found))


def _pairs() -> Iterator[str]:
    yield "Log ratio of the median steps of the two, in percent, pair by pair, in turns of 0.2 s (and the time their"
    yield "threads waited for a core, over the time they ran)."
    yield ""
    for one in load():
        if one.grain_s == 0.2:
            medians = [
                np.median(
                    np.concatenate([b for b, t in zip(one.step_s, one.turns, strict=True) if t == turn])
                )
                for turn in (0, 1)
            ]
            waited = sum(one.waiting_s) / sum(one.running_s)
            yield f"- {one.program}, {one.condition}: {100 * np.log(medians[0] / medians[1]):+.1f} ({waited:.2f})"
