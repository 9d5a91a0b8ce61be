"""Detailed profiling of an arm whose trial is over, so that a report can show a step before and after.

The arm is warm and alive: what costs a start-up elsewhere costs a few steps here.
"""

from __future__ import annotations

from collections.abc import Callable

from hotloop.launch.deadline import Deadline
from hotloop.model.deep import Deep
from hotloop.observe.build import leading
from hotloop.observe.decode.spans import timelines
from hotloop.observe.profile.profile import read_deep
from hotloop.observe.profile.windows import Course, run_course
from hotloop.tune.trials.arm import Arm

INSTRUMENTS = ("host", "call_sites", "memory", "operators", "flops")
"""In the order in which the probe knows them."""
STEPS, SECONDS = 40, 15.0
"""Two arms take so many steps and seconds, reading included."""
MAX_STEP_S = 2.0
"""Beyond it the steps of the profilers take minutes."""


def look_s(step_s: float) -> float | None:
    """Return what looking at two arms takes; None: it takes too long."""
    return SECONDS + STEPS * step_s if step_s <= MAX_STEP_S else None


def detailed_look(arm: Arm, progress: Callable[[str], None], limit_s: float) -> Deep | None:
    """Let an arm run on under the profilers, for so long, and freeze it; None: it ended before they had seen anything.

    Left running it would share the cores with the arm that is looked at next: a volumetric net's step took seconds.
    """
    lead = arm.let_go()
    if lead is None:
        return None
    course = Course(
        names=INSTRUMENTS,
        known=INSTRUMENTS,
        anchor=arm.anchor,
        step_s=arm.step_s(),
        lead=lead,
        deadline=Deadline(limit_s, "--budget"),
    )
    run_course(arm.run, arm.page, course, progress)
    arm.freeze()
    found = leading(timelines(arm.folder, {}))
    return read_deep(arm.folder, found, INSTRUMENTS) if found is not None else None
