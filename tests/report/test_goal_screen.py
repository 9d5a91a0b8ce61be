"""What the screen and the page say of a goal of memory or of cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from hotloop.model.goal import Aim, Cost, Goal, Point, Reached
from hotloop.model.ratio import Ratio
from hotloop.model.tuning import Plan, TuneResult
from hotloop.report.content.content import ReportContent
from hotloop.report.content.headline import headline, savings
from hotloop.report.sections.all import document
from hotloop.report.sections.goal import goal
from hotloop.report.terminal.tuning import render

from .results import FIT, PARITY, STEPS, empty, full, shown
from .rich_session import content

MIB = 1 << 20


def point(names: tuple[str, ...], step_s: float, mib: int, *, optimal: bool, chosen: bool = False) -> Point:
    """A configuration."""
    return Point(names=names, step_s=step_s, peak_bytes=mib * MIB, num_sets=3, optimal=optimal, chosen=chosen)


POINTS = (
    point(("larger",), 0.11, 800, optimal=False),
    point((), 0.1, 512, optimal=True),
    point(("bf16",), 0.11, 400, optimal=True),
    point(("checkpointing",), 0.125, 230, optimal=True, chosen=True),
    point(("checkpointing", "offload"), 0.4, 200, optimal=True),
)
REACHED = Reached(
    method="counted tensors",
    peak_bytes=(512 * MIB, 230 * MIB),
    memory=Ratio(2.22, 2.2, 2.24),
    points=POINTS,
    smallest=POINTS[-1],
)


def smaller(aim: Aim, reached: Reached = REACHED) -> TuneResult:
    """A plan that saves memory."""
    steps = (msgspec.structs.replace(STEPS[0], ratio=0.8, low=0.78, high=0.82, memory_ratio=2.22),)
    plan = Plan(steps=steps, speedup=Ratio(0.8, 0.78, 0.82), parity=PARITY, fit=FIT)
    return full(plan=plan, aim=aim, goal=reached)


def test_a_smaller_peak_is_said_first_with_its_interval_and_what_it_costs() -> None:
    text = shown(render(smaller(Aim(goal=Goal.MEMORY))))
    said = " ".join(text.split())
    assert "55% less memory at the peak [55%, 55%], 230 MiB instead of 512 MiB, 0.80x as fast" in said
    assert "-55%" in said, "of the step"
    assert "chosen, optimal" in said
    assert len(text.splitlines()) <= 30


def test_a_plan_within_a_limit_says_the_limit_and_marks_those_above_it() -> None:
    result = smaller(Aim(fit_bytes=256 * MIB), msgspec.structs.replace(REACHED, fits=True))
    said = " ".join(shown(render(result, verbose=True)).split())
    assert "Fits in 256 MiB: 55% less memory" in said
    assert "too large" in said


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (100, "Nothing fits in 100 MiB: the smallest peak was 200 MiB, with checkpointing and offload."),
        (210, "No plan was proven to fit in 210 MiB in the time: the smallest peak was 200 MiB"),
    ],
)
def test_a_limit_that_was_not_met_says_the_smallest_peak(limit: int, words: str) -> None:
    reached = msgspec.structs.replace(REACHED, fits=False, memory=None)
    said = " ".join(shown(render(empty(aim=Aim(fit_bytes=limit * MIB), goal=reached))).split())
    assert words in said


def test_no_plan_though_something_had_a_smaller_peak_says_why() -> None:
    result = empty(aim=Aim(goal=Goal.MEMORY), goal=msgspec.structs.replace(REACHED, memory=None))
    said = " ".join(shown(render(result)).split())
    assert (
        "those with a smaller peak were too slow (--max-slowdown), or could not be proven in the time" in said
    )
    larger = msgspec.structs.replace(REACHED, memory=None, points=POINTS[:2])
    said = " ".join(shown(render(msgspec.structs.replace(result, goal=larger))).split())
    assert "none had a smaller peak" in said


def test_the_page_has_every_configuration() -> None:
    section = goal(_content(smaller(Aim(goal=Goal.MEMORY))))
    assert section is not None
    (table, note, *_) = section.blocks
    assert len(table.rows) == len(POINTS)  # type: ignore[union-attr]
    assert "counted tensors" in note.text  # type: ignore[union-attr]


def test_the_first_figure_of_the_page_is_the_peak_and_a_slower_step_is_no_speed_up() -> None:
    result = smaller(Aim(goal=Goal.MEMORY))
    said = content()
    head = headline(said.observation, result, said.bottleneck)
    saved = savings(said.observation, result, price_per_hour=None, power_price=None)
    tiles = document(msgspec.structs.replace(said, tuning=result, headline=head, savings=saved)).tiles
    assert (tiles[0].name, tiles[0].value) == ("less memory at the peak", "55%")
    assert tiles[0].detail == "95% interval [55%, 55%]; 230 MiB, was 512 MiB"
    assert (tiles[1].name, tiles[1].good) == ("speed", None)
    assert "time saved" not in [tile.name for tile in tiles]


def _content(result: TuneResult) -> ReportContent:
    return cast(ReportContent, SimpleNamespace(tuning=result))


def test_cost_is_said_before_and_after() -> None:
    cost = Cost(unit="epoch", before=1.5, after=1.0, watts=None, method="price of the machine x time")
    said = " ".join(
        shown(render(full(aim=Aim(goal=Goal.COST, price_per_hour=2.0), goal=Reached(cost=cost)))).split()
    )
    assert "1.50 per epoch as it was, 1.00 with the plan (price of the machine x time)" in said


def test_a_session_for_speed_says_nothing_of_goals() -> None:
    assert "configuration" not in shown(render(full()))
