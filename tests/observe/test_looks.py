"""Further runs of a short program: planned with what the first one told, on a simulated program."""

from __future__ import annotations

import importlib

import msgspec
import pytest

from hotloop.launch.deadline import Deadline
from hotloop.model.observation import Anchor
from hotloop.observe.profile.windows import INSTRUMENTS, SECONDS, Ending, fitting
from hotloop.observe.run.looks import ENDED, FIRST, Look, Looks
from hotloop.observe.run.pace import Pace

from .simulated_program import FakeClock

NAMES = ("host", "loading", "operators", "memory")
PACE = Pace(
    anchor=Anchor("optimizer", 0, 1), step_s=0.1, startup_s=3.0, warm_steps=2, num_steps=20, phases={}
)
SHORT = Look(ending=Ending.EXIT, wall_s=5.0, num_steps=20, exit_code=0)


class ShortProgram:
    """Every run of it has room for so many windows, and a piece of one more.

    Args:
        clock: on which it runs.
        room: whole windows in a run.
        exit_code: its runs end with.
    """

    def __init__(self, clock: FakeClock, room: int, exit_code: int = 0) -> None:
        self._clock, self._room, self._exit_code = clock, room, exit_code
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, names: tuple[str, ...], _: float) -> Look:
        """Run it again."""
        self.asked.append(names)
        self._clock.sleep(5.0)
        seen = {name: len(self.asked) for name in names[: self._room + 1]}
        return Look(
            values={} if self._exit_code else seen,
            cut=frozenset(names[self._room : self._room + 1]),
            ending=Ending.EXIT if len(names) > self._room else Ending.DONE,
            wall_s=5.0,
            num_steps=20,
            exit_code=self._exit_code or None,
            last_words="ValueError: no" if self._exit_code else "",
        )


def _looked(room: int, *, budget_s: float = 90.0, exit_code: int = 0) -> tuple[Looks, ShortProgram, str]:
    clock = FakeClock()
    looks, program = Looks(NAMES, SHORT), ShortProgram(clock, room, exit_code)
    why = looks.further(PACE, Deadline(budget_s, clock=clock), program)
    return looks, program, why


@pytest.mark.parametrize(("room", "num_runs"), [(3, 2), (2, 3), (1, 4), (0, 4)])
def test_as_few_further_runs_as_are_needed(room: int, num_runs: int) -> None:
    looks, program, why = _looked(room)
    assert why == ""
    assert set(looks.values()) == set(NAMES)
    assert len(program.asked) == num_runs


def test_a_window_that_the_end_cut_short_is_looked_at_again() -> None:
    looks, program, _ = _looked(2)
    assert program.asked == [("host",), ("loading", "operators", "memory"), ("memory",)]
    assert looks.values()["memory"] == 3


def test_a_program_with_room_for_all_is_run_once_more() -> None:
    looks, program = Looks(NAMES, SHORT), ShortProgram(FakeClock(), 4)
    longer = msgspec.structs.replace(PACE, num_steps=100)
    assert looks.further(longer, Deadline(90.0, clock=FakeClock()), program) == ""
    assert program.asked == [NAMES]


def test_windows_are_shortened_alike_where_they_do_not_fit() -> None:
    assert fitting(NAMES, 10.0) == (NAMES, 1.0)
    assert fitting(NAMES, 2.0) == (("host",), 1.0)
    names = ("operators", "host", "call_sites")
    assert fitting(names, 0.65) == (("operators", "call_sites"), pytest.approx(0.5))


def test_the_seconds_of_the_plan_are_those_of_the_instruments() -> None:
    for name, order in INSTRUMENTS.items():
        assert getattr(importlib.import_module(order["module"]), order["cls"]).seconds == SECONDS[name]


def test_nothing_is_run_again_where_all_was_seen() -> None:
    first = msgspec.structs.replace(SHORT, values=dict.fromkeys(NAMES, 0), ending=Ending.DONE)
    looks = Looks(NAMES, first)
    assert looks.missing() == ()
    assert list(looks.gaps("")) == []
    assert [run.told for run in looks.runs()] == [("step", *NAMES)]


def test_an_instrument_that_cannot_be_used_is_not_tried_again() -> None:
    first = msgspec.structs.replace(SHORT, refused={"memory": "it profiles itself"})
    looks = Looks(NAMES, first)
    assert "memory" not in looks.missing()
    assert [(gap.what, gap.why) for gap in looks.gaps("x") if gap.what == "memory"] == [
        ("memory", "it profiles itself")
    ]


def test_which_run_told_what_is_said() -> None:
    looks, _, why = _looked(2)
    told = [("step",), ("host",), ("loading", "operators"), ("memory",)]
    assert [run.told for run in looks.runs()] == told
    assert [run.why for run in looks.runs()] == ["", *["the first one ended after 20 steps"] * 3]
    said = [f"{gap.what}: {gap.why}" for gap in looks.gaps(why)]
    assert said[1] == (
        "loading and operators in the run of the steps: "
        "seen in run 3 of the program, as the first one ended after 20 steps"
    )


def test_what_had_no_time_is_one_line_by_name() -> None:
    looks, program, why = _looked(1, budget_s=14.0)
    assert len(program.asked) == 2
    gaps = [f"{gap.what}: {gap.why}" for gap in looks.gaps(why)]
    assert gaps[0] == "memory: no time left (--seconds 14)", "operators were looked at, if for a short time"
    looks, program, why = _looked(1, budget_s=3.0)
    assert program.asked == []
    assert [f"{gap.what}: {gap.why}" for gap in looks.gaps(why)] == [
        "host, loading, operators, memory: no time left (--seconds 3)"
    ]


def test_a_program_that_fails_when_it_is_run_again() -> None:
    looks, program, why = _looked(2, exit_code=1)
    assert len(program.asked) == 1
    assert why == "run 2 of the program failed with exit code 1: ValueError: no"
    assert [gap.what for gap in looks.gaps(why)] == [", ".join(NAMES)]


def test_a_run_that_tells_nothing_is_the_last() -> None:
    clock = FakeClock()
    looks = Looks(NAMES, SHORT)
    runs: list[tuple[str, ...]] = []

    def nothing(names: tuple[str, ...], _: float) -> Look:
        runs.append(names)
        return SHORT

    assert looks.further(PACE, Deadline(90.0, clock=clock), nothing) == ENDED
    assert runs == [("host",)]


def test_a_long_evaluation_is_given_as_the_reason() -> None:
    looks = Looks(NAMES, msgspec.structs.replace(SHORT, ending=Ending.STUCK, exit_code=None))
    looks.further(PACE, Deadline(90.0, clock=FakeClock()), ShortProgram(FakeClock(), 4))
    assert looks.runs()[FIRST].why == "no step came in the first one for longer than a restart takes"
