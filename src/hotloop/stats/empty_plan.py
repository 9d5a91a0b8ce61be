"""Why a plan is empty: one sentence, for every screen that says it."""

from __future__ import annotations

from hotloop.model.goal import Goal
from hotloop.model.quantities import counted, duration
from hotloop.model.tuning import Contention, TuneResult

UNUSED = 0.1
"""Of the budget: with more of it left the time was not what was missing."""


def why_empty(result: TuneResult) -> str:
    """Return why nothing was proven, to follow a colon."""
    if result.interrupted:
        return "the session was interrupted before"
    if result.likely:
        return "something is likely to help, and it could not be proven in the time"
    num = len(result.trials)
    if num and 2 * result.contention.num_disturbed > result.contention.num_blocks:
        return f"other processes {disturbed(result.contention)}, too many to tell"
    if num and result.aim.goal is Goal.MEMORY:
        return f"of {counted(num, 'trial')}, {_smaller(result)}"
    if num:
        return f"of {counted(num, 'trial')}, none beat the program as it is by more than the noise here"
    if any(_was_tried(one.reason) or one.tried for one in result.refused):
        beside = "beside other processes " if result.contention.num_noisy else ""
        return f"{beside}what was tried could not be proven{_in_time(result)}"
    if any(one.reason.startswith("not tried") for one in result.refused):
        return f"nothing was tried{_in_time(result)}"
    return "there was nothing to try"


def _smaller(result: TuneResult) -> str:
    """Say whether anything that was measured has a smaller peak than the program as it is."""
    points = result.goal.points if result.goal is not None else ()
    original = next((one.peak_bytes for one in points if not one.names), None)
    if original is None or all(one.peak_bytes >= original for one in points):
        return "none had a smaller peak"
    return "those with a smaller peak were too slow (--max-slowdown), or could not be proven in the time (--budget)"


def disturbed(load: Contention) -> str:
    """Return how much of what was measured other processes disturbed."""
    used = f" (up to {load.max_foreign_share:.0%} of the CPU)" if load.max_foreign_share is not None else ""
    return f"disturbed {load.num_disturbed:,} of {counted(load.num_blocks, 'block')}{used}"


def unused_s(budget_s: float | None, wall_s: float) -> float | None:
    """Return the time that was left of a budget; None: it was used, or is not known."""
    if budget_s is None or budget_s - wall_s <= UNUSED * budget_s:
        return None
    return budget_s - wall_s


def _in_time(result: TuneResult) -> str:
    """Say that the time was too short where it was used; else how much was left, which a trial and its proof exceed."""
    left_s = unused_s(result.budget_s, result.wall_s)
    if left_s is None:
        return ": the time was too short (--budget gives more)"
    return (
        f": a trial and its proof need more than the {duration(left_s)} that are left (--budget gives more)"
    )


def _was_tried(reason: str) -> bool:
    """Whether a result of an earlier version says of a change that it was measured."""
    return "when confirmed" in reason or reason.startswith(("slower", "no effect", "faster", "promising"))
