"""A watch keeps to its time, whatever the program does: on a simulated program, on a clock of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.launch.deadline import Deadline
from hotloop.observe.build import leading
from hotloop.observe.profile.windows import ALL, INSTRUMENTS, Ending
from hotloop.observe.run.pace import pace_of
from hotloop.observe.run.stopping import MIN_STEPS, StopRule
from hotloop.observe.run.watch import Watch, Wishes

from .simulated_program import FakeClock, NoNetwork, SimulatedProgram

BUDGET_S = 90.0


class Watched:
    """One watch of a simulated program, from start to end."""

    def __init__(
        self,
        folder: Path,
        wishes: Wishes,
        *,
        budget_s: float = BUDGET_S,
        **shape: float | int | tuple[int, float],
    ) -> None:
        clock = FakeClock()
        self.deadline = Deadline(budget_s, clock=clock)
        self.program = SimulatedProgram(clock, folder, **shape)  # type: ignore[arg-type]
        began = clock.now()
        self.watch = Watch(
            wishes, self.deadline, self.program, folder, self.program.page, lambda _: None, began, NoNetwork()
        )
        self.watch.until_done()
        self.spent_s = clock.now() - began
        self.pace = pace_of(leading(self.watch.known), began)

    @property
    def looked(self) -> list[str]:
        """The instruments that were put to use, in their order."""
        return [tuple(INSTRUMENTS)[number - 1] for number in self.program.ordered]


DEFAULT = Wishes(rule=StopRule(), deep=ALL)


def test_every_instrument_looks_where_there_is_time(tmp_path: Path) -> None:
    seen = Watched(tmp_path, DEFAULT)
    assert seen.watch.looked is Ending.DONE
    assert set(seen.looked) == set(ALL)
    assert not seen.watch.cut_short


def test_slow_steps_are_looked_at_by_what_matters_most(tmp_path: Path) -> None:
    seen = Watched(tmp_path, DEFAULT, step_s=8.0)
    assert seen.spent_s <= BUDGET_S
    assert seen.watch.looked is Ending.NO_TIME
    assert seen.looked[:2] == ["host", "dataflow"], "the step is forward and backward"
    assert len(seen.looked) < len(ALL)
    assert seen.watch.cut_short


@pytest.mark.parametrize("budget_s", [10.0, 20.0, 90.0])
@pytest.mark.parametrize("step_s", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("lasting", [False, True])
def test_no_budget_is_exceeded(tmp_path: Path, budget_s: float, step_s: float, *, lasting: bool) -> None:
    wishes = Wishes(rule=StopRule(lasting=lasting), deep=ALL, later=lambda start, step: start + 20 * step)
    seen = Watched(tmp_path, wishes, budget_s=budget_s, step_s=step_s)
    assert seen.spent_s <= budget_s


@pytest.mark.parametrize("evaluation", [(58, 1000.0), (8, 1000.0), (3, 1000.0)])
def test_a_long_evaluation_is_not_watched_to_its_end(tmp_path: Path, evaluation: tuple[int, float]) -> None:
    seen = Watched(tmp_path, DEFAULT, evaluation=evaluation)
    assert seen.spent_s <= BUDGET_S
    assert seen.pace is not None
    assert seen.pace.num_steps == evaluation[0]


def test_an_evaluation_longer_than_a_restart_is_left_for_another_run(tmp_path: Path) -> None:
    seen = Watched(tmp_path, DEFAULT, step_s=0.1, evaluation=(120, 1000.0))
    assert seen.watch.looked is Ending.STUCK
    assert seen.spent_s < BUDGET_S / 2, "the rest of the time is for that run"


def test_steps_that_an_instrument_makes_much_longer_are_not_taken_for_an_evaluation(tmp_path: Path) -> None:
    seen = Watched(tmp_path, DEFAULT, step_s=0.3, slowed=20.0)
    assert seen.watch.looked is Ending.NO_TIME
    assert seen.looked[:3] == ["host", "dataflow", "memory"]


def test_a_start_that_takes_the_whole_budget(tmp_path: Path) -> None:
    seen = Watched(tmp_path, DEFAULT, startup_s=500.0)
    assert seen.watch.timed_out
    assert seen.spent_s <= BUDGET_S
    assert seen.pace is None


def test_steps_asked_for_by_number_come_before_the_instruments(tmp_path: Path) -> None:
    wishes = Wishes(rule=StopRule(steps=100), deep=ALL)
    seen = Watched(tmp_path, wishes, step_s=0.1)
    assert seen.pace is not None
    assert seen.pace.num_steps > 100
    assert seen.watch.looked is Ending.DONE


def test_and_never_take_more_than_the_budget(tmp_path: Path) -> None:
    seen = Watched(tmp_path, Wishes(rule=StopRule(steps=10**6), deep=ALL), step_s=1.0)
    assert seen.spent_s <= BUDGET_S
    assert seen.watch.cut_short


def test_a_budget_that_was_asked_for_is_used(tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    (tmp_path / "asked").mkdir()
    default = Watched(tmp_path / "default", DEFAULT, step_s=0.5)
    lasting = Wishes(rule=StopRule(lasting=True), deep=ALL)
    asked = Watched(tmp_path / "asked", lasting, budget_s=180.0, step_s=0.5)
    assert default.pace is not None
    assert asked.pace is not None
    assert asked.pace.num_steps > 2 * default.pace.num_steps > 2 * MIN_STEPS
    assert asked.watch.looked is Ending.DONE


def test_a_later_stage_gets_its_part(tmp_path: Path) -> None:
    wishes = Wishes(rule=StopRule(lasting=True), deep=ALL, later=lambda start, _: start)
    seen = Watched(tmp_path, wishes, step_s=0.5)
    assert seen.deadline.left_s() > 3.0
