"""End a run at a step boundary, the same one for all ranks."""

from __future__ import annotations

import psutil

from hotloop.launch.deadline import Deadline
from hotloop.launch.process import Run
from hotloop.probe.control.control_page import (
    GO_UNTIL,
    PID,
    RANK,
    STATE,
    STEPS,
    STOP,
    STOPPED,
    WAITING,
    ControlPage,
)

STOP_PATIENCE_S = 5.0
"""A rank may wait in a collective for one that has stopped already; it is ended after this."""
END_PATIENCE_S = 5.0
"""What a program whose training processes are gone may take to end itself."""


def end_at_boundary(
    run: Run, page: ControlPage, deadline: Deadline, *, interrupted: bool = False
) -> int | None:
    """Hold every training process at a step boundary, to be ended there; return the exit code of what ended itself.

    Ranks in step are at most one step apart; without a common last step one would wait for a rank that has stopped.
    """
    code = run.exit_code()
    if code is not None:
        return code
    rows = page.rows()
    page.numbers[GO_UNTIL] = max((row[STEPS] for row in rows), default=0) + 2
    if sum(row[RANK] >= 0 for row in rows) > 1:
        run.wait(lambda: _all_in(page, WAITING), poll_s=0.01, timeout_s=_within(STOP_PATIENCE_S, deadline))
    page.numbers[STOP] = 1
    run.wait(lambda: _all_in(page, STOPPED), poll_s=0.01, timeout_s=_within(STOP_PATIENCE_S, deadline))
    if interrupted or any(psutil.pid_exists(row[PID]) for row in page.rows()):
        return None
    # It was on its way to its own end: a loop that is over comes to no boundary.
    run.wait(lambda: run.exit_code() is not None, poll_s=0.01, timeout_s=_within(END_PATIENCE_S, deadline))
    return run.exit_code()


def _within(seconds: float, deadline: Deadline) -> float:
    """Return a patience that leaves half of what is left of the budget for what comes after."""
    return min(seconds, deadline.closing_s() / 2)


def _all_in(page: ControlPage, state: int) -> bool:
    """Whether all processes that have taken steps and live are held."""
    return all(row[STATE] == state or not psutil.pid_exists(row[PID]) for row in page.rows())
