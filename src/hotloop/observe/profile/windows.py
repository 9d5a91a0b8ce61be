"""Ask a running program for one profiler after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import psutil

from hotloop.launch.process import Run
from hotloop.model.observation import Anchor
from hotloop.probe.control.control_page import (
    DEEP,
    DEEP_DONE,
    DEEP_EVERY,
    DEEP_KIND,
    DEEP_SLOT,
    PID,
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
"""Name to module and class; they run in this order, the lightest first."""
ALL = tuple(INSTRUMENTS)
MAX_STEP_S = 15.0
"""The instruments at two to three such steps each take four minutes: slower programs are not looked at by default."""
OTHERS_S = 3.0
"""When the leading process has looked, other ranks get so long to end theirs: they began at the same boundary."""


def orders(names: Iterable[str]) -> tuple[dict[str, Any], ...]:
    """Return what the probe is told of the instruments."""
    return tuple({"name": name, **INSTRUMENTS[name]} for name in INSTRUMENTS if name in set(names))


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of instruments needs to know.

    Attributes:
        names: the instruments, in the order in which the probe knows them.
        anchor: what ends a step.
        step_s: how long one takes.
        lead: the process that speaks for the program.
        until_s: of the monotonic clock; what has not looked by then is left out.
    """

    names: tuple[str, ...]
    anchor: Anchor
    step_s: float
    lead: int
    until_s: float = math.inf

    @property
    def patience_s(self) -> float:
        """How long one instrument may take: up to its first boundary, its window, writing it down."""
        return min(MAX_S + 4 * self.step_s + 20.0, self.until_s - time.monotonic())


def run_course(run: Run, page: ControlPage, course: Course, progress: Callable[[str], None]) -> None:
    """Let every process look with one instrument after the other, while the program runs on."""
    page.numbers[DEEP_KIND] = KINDS[course.anchor.kind]
    page.numbers[DEEP_SLOT] = course.anchor.slot
    page.numbers[DEEP_EVERY] = course.anchor.every
    for number, name in enumerate(course.names, start=1):
        if course.patience_s <= 0:
            break
        progress(f"detailed profiling: {name.replace('_', ' ')}")
        page.numbers[DEEP] = number
        looked = run.wait(lambda n=number: _done(page, n, course.lead), timeout_s=course.patience_s)  # type: ignore[misc]
        if looked:
            run.wait(lambda n=number: _done(page, n), timeout_s=OTHERS_S + course.step_s)  # type: ignore[misc]
        if run.exit_code() is not None:
            return
    page.numbers[DEEP] = 0


def _done(page: ControlPage, number: int, pid: int | None = None) -> bool:
    """Whether a process, or every process that takes steps, has looked or is gone."""
    if pid is not None:
        return any(
            row[PID] == pid and row[DEEP_DONE] == number for row in page.rows()
        ) or not psutil.pid_exists(pid)
    return all(row[DEEP_DONE] == number or not psutil.pid_exists(row[PID]) for row in page.rows())
