"""Ask a running program for one profiler after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol

import msgspec

from hotloop.launch.deadline import Deadline
from hotloop.model.observation import Anchor, Phase
from hotloop.probe.control.control_page import (
    DEEP,
    DEEP_DONE,
    DEEP_EVERY,
    DEEP_HOLDS,
    DEEP_KIND,
    DEEP_MS,
    DEEP_PERMILLE,
    DEEP_SLOT,
    PID,
    STEPS,
    ControlPage,
)
from hotloop.probe.control.step_boundary import KINDS
from hotloop.probe.windows.profiling_windows import MAX_S

_FOLDER = "hotloop.probe.instruments."
INSTRUMENTS: dict[str, dict[str, Any]] = {
    "host": {
        "module": f"{_FOLDER}host_samples",
        "cls": "HostSamples",
        "workers": f"{_FOLDER}worker_samples",
    },
    "growing_containers": {"module": f"{_FOLDER}growing_containers", "cls": "GrowingContainers"},
    "loading": {
        "module": f"{_FOLDER}loading",
        "cls": "Loading",
        "workers": f"{_FOLDER}worker_loading",
    },
    "dataflow": {"module": f"{_FOLDER}dataflow", "cls": "Dataflow"},
    "call_sites": {"module": f"{_FOLDER}call_sites", "cls": "CallSites"},
    "forwards": {"module": f"{_FOLDER}forwards", "cls": "Forwards"},
    "memory": {"module": f"{_FOLDER}memory", "cls": "Memory"},
    "operators": {
        "module": f"{_FOLDER}operators",
        "cls": "Operators",
        "workers": f"{_FOLDER}worker_fetches",
    },
    "flops": {"module": f"{_FOLDER}flops", "cls": "Flops"},
    "optimizers": {"module": f"{_FOLDER}optimizers", "cls": "Optimizers"},
    "line_work": {"module": f"{_FOLDER}line_work", "cls": "LineWork"},
}
"""Name to module and class."""
ALL = tuple(INSTRUMENTS)
SAMPLER = "host"
"""What it tells grows with its time; the others need steps."""
SECONDS = {
    "host": 2.0,
    "growing_containers": 1.0,
    "loading": 1.0,
    "call_sites": 1.0,
    "forwards": 0.5,
    "memory": 0.2,
    "operators": 0.3,
    "flops": 0.0,
    "dataflow": 1.0,
    "optimizers": 0.0,
    "line_work": 0.2,
}
"""How long each looks where there are steps enough (the instruments' own `seconds`)."""
_LOADER = (
    "host", "loading", "memory", "dataflow", "call_sites", "growing_containers", "line_work", "operators", "flops",
    "optimizers", "forwards",
)  # fmt: skip
_MODEL = (
    "host", "dataflow", "memory", "line_work", "growing_containers", "call_sites", "loading", "operators", "flops",
    "forwards", "optimizers",
)  # fmt: skip
"""What names lines comes before what names operators: a profiler takes a minute to put together thousands of them.
Of the profilers memory is the first: its window is two steps, and the findings about memory need it."""
_HOST = (
    "host", "call_sites", "memory", "growing_containers", "dataflow", "line_work", "forwards", "operators", "flops",
    "optimizers", "loading",
)  # fmt: skip
_ORDER = {
    Phase.DATA: _LOADER,
    Phase.FORWARD: _MODEL,
    Phase.BACKWARD: _MODEL,
    Phase.OPTIMIZER: _MODEL,
    Phase.COMMUNICATION: _MODEL,
}
"""By the phase that takes most of the step: the instruments whose rules explain that phase come first. Before all comes
the sampler: it slows nothing, and every finding with a line of the user's code needs it."""
OTHERS_S = 3.0
"""When the leading process has looked, other ranks get so long to end theirs: they began at the same boundary."""
POLL_S = 0.02
WRITING_S = 20.0
"""What an instrument may take to put together what it saw, after its window: a trace of a large step takes seconds."""
_STUCK_STEPS = 30
"""A boundary is overdue after so many steps' time, however short a restart is: profilers make steps longer (of 35,000
small operations 17 times, where each is looked at)."""


class Program(Protocol):
    """A run of the command, as far as a course needs to know it."""

    def exit_code(self) -> int | None:
        """Return how it ended; None while it runs."""

    def lives(self, pid: int) -> bool:
        """Whether one of its processes, under the number that it knows itself by, is alive."""


class Ending(Enum):
    """Why a course came to its end."""

    DONE = "every instrument had its turn"
    NO_TIME = "the deadline came"
    STUCK = "no step boundary came for longer than a restart of the program takes"
    EXIT = "the program ended"


def orders(names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """Return what the probe is told of the instruments."""
    return tuple({"name": name, **INSTRUMENTS[name]} for name in INSTRUMENTS if name in set(names))


def by_worth(names: Iterable[str], phases: Mapping[Phase, float]) -> tuple[str, ...]:
    """Return instruments in the order in which they matter for a step.

    Args:
        names: the instruments.
        phases: the step's time by phase.
    """
    wanted = set(names)
    main = max(phases, key=lambda phase: phases[phase], default=Phase.OTHER)
    return tuple(name for name in _ORDER.get(main, _HOST) if name in wanted)


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of instruments needs to know.

    Attributes:
        names: the instruments, the ones that matter most first.
        known: all that the probe was told of, in its order.
        anchor: what ends a step.
        step_s: how long one takes.
        lead: the process that speaks for the program.
        deadline: what has not looked by then is left out.
        restart_s: what it takes to start the program anew and come to its steps: no boundary is waited for longer.
        scale: what part of its usual seconds an instrument looks, where a short program has not as many.
    """

    names: tuple[str, ...]
    known: tuple[str, ...]
    anchor: Anchor
    step_s: float
    lead: int
    deadline: Deadline
    restart_s: float = math.inf
    scale: float = 1.0


def fitting(names: Sequence[str], seconds: float) -> tuple[tuple[str, ...], float]:
    """Return the instruments for one further run of a short program, and what part of their seconds they look.

    Where not all fit in it at their usual length, the sampler has a run of its own, and the others share one.

    Args:
        names: the instruments that are missing, the ones that matter most first.
        seconds: that the program trains.
    """
    if sum(SECONDS[name] for name in names) <= seconds:
        return tuple(names), 1.0
    if names[0] == SAMPLER:
        return (SAMPLER,), 1.0
    others = tuple(name for name in names if name != SAMPLER)
    wanted_s = sum(SECONDS[name] for name in others)
    return others, min(1.0, seconds / wanted_s) if wanted_s else 1.0


def run_course(
    run: Program,
    page: ControlPage,
    course: Course,
    progress: Callable[[str], None],
    ready: Callable[[], None] = lambda: None,
) -> Ending:
    """Let every process look with one instrument after the other, while the program runs on.

    Args:
        run: the program.
        page: its control page.
        course: what is looked at.
        progress: told of what goes on.
        ready: called when the first instrument is ordered: it lets go of a program that is held until then.
    """
    page.numbers[DEEP_KIND] = KINDS[course.anchor.kind]
    page.numbers[DEEP_SLOT] = course.anchor.slot
    page.numbers[DEEP_EVERY] = course.anchor.every
    page.numbers[DEEP_HOLDS] = 1
    page.numbers[DEEP_PERMILLE] = max(1, int(1000 * course.scale))
    waiting = _Waiting(run, page, course)
    ending = Ending.DONE
    for turn, name in enumerate(course.names):
        if course.deadline.left_s() < 2 * course.step_s:  # one to come to the boundary, one to look at
            ending = Ending.NO_TIME
            break
        progress(f"detailed profiling: {name.replace('_', ' ')}")
        number = course.known.index(name) + 1
        part_s = course.deadline.left_s() / (len(course.names) - turn)
        page.numbers[DEEP_MS] = 0 if math.isinf(part_s) or part_s >= MAX_S else max(1, int(1000 * part_s))
        page.numbers[DEEP] = number
        if turn == 0:
            ready()
        ending = waiting.for_window(number)
        if ending is not Ending.DONE:
            break
    waiting.close()
    return ending


class _Waiting:
    """Waits for the windows of one course.

    Args:
        run: the run.
        page: its control page.
        course: what is looked at.
    """

    def __init__(self, run: Program, page: ControlPage, course: Course) -> None:
        self._run = run
        self._page = page
        self._course = course
        self._clock = course.deadline.clock

    def for_window(self, number: int) -> Ending:
        """Wait until every process has looked, or will not."""
        course = self._course
        overdue_s = max(course.restart_s, _STUCK_STEPS * course.step_s)
        limit = course.deadline.earlier(MAX_S + _STUCK_STEPS * course.step_s + WRITING_S)
        steps, moved_s = self._steps(), self._clock.now()
        while not _done(self._run, self._page, number, course.lead):
            now = self._clock.now()
            if self._steps() != steps:
                steps, moved_s = self._steps(), now
            if self._has_ended():
                return Ending.EXIT
            if course.deadline.is_over():
                return Ending.NO_TIME
            if now - moved_s > overdue_s:
                return Ending.STUCK
            if limit.is_over():  # this instrument does not end; the next one may
                return Ending.DONE
            self._clock.sleep(POLL_S)
        others = course.deadline.earlier(OTHERS_S + course.step_s)
        while not (
            _done(self._run, self._page, number) or others.is_over() or self._run.exit_code() is not None
        ):
            self._clock.sleep(POLL_S)
        return Ending.EXIT if self._has_ended() else Ending.DONE

    def close(self) -> None:
        """Take the wish back, and let a window that is open write what it saw: it ends at the next boundary."""
        open_number = self._page.numbers[DEEP]
        self._page.numbers[DEEP] = self._page.numbers[DEEP_MS] = 0
        closing_s = min(2 * self._course.step_s + POLL_S, self._course.deadline.closing_s() / 2)
        until_s = self._clock.now() + closing_s
        while (
            not _done(self._run, self._page, open_number, self._course.lead)
            and self._clock.now() < until_s
            and self._run.exit_code() is None
        ):
            self._clock.sleep(POLL_S)

    def _has_ended(self) -> bool:
        return self._run.exit_code() is not None or not self._run.lives(self._course.lead)

    def _steps(self) -> int:
        return max((row[STEPS] for row in self._page.rows() if row[PID] == self._course.lead), default=0)


def _done(run: Program, page: ControlPage, number: int, pid: int | None = None) -> bool:
    """Whether a process has looked, or every process that takes steps has or is gone."""
    if pid is not None:
        return any(row[PID] == pid and row[DEEP_DONE] == number for row in page.rows())
    return all(row[DEEP_DONE] == number or not run.lives(row[PID]) for row in page.rows())
