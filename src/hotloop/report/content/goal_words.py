"""What came of a goal of memory, as a sentence."""

from __future__ import annotations

from hotloop.model.goal import Point
from hotloop.model.quantities import byte_size, counted, listed
from hotloop.model.tuning import TuneResult
from hotloop.report.content.figures import as_fast
from hotloop.stats.empty_plan import why_empty


def goal_sentence(result: TuneResult) -> str | None:
    """Return the verdict of a session in which memory counts; None: it does not."""
    if not result.aim.counts_memory:
        return None
    if not result.plan.steps:
        return _empty(result)
    goal, speed = result.goal, result.plan.speedup
    before, after = goal.peak_bytes if goal is not None else (None, None)
    if goal is None or goal.memory is None or before is None or after is None or speed is None:
        return None
    less = [1 - 1 / one for one in (goal.memory.ratio, goal.memory.low, goal.memory.high)]
    saved = f"{less[0]:.0%} less memory at the peak [{less[1]:.0%}, {less[2]:.0%}]"
    if less[0] < 0:
        saved = f"{-less[0]:.0%} more memory at the peak"
    limit = result.aim.fit_bytes
    fits = f"Fits in {byte_size(limit)}: " if limit is not None else ""
    return (
        f"{fits}{saved}, {byte_size(after)} instead of {byte_size(before)}, {as_fast(speed)}, proven in fresh "
        f"processes, with {counted(len(result.plan.steps), 'change')}."
    )


def _empty(result: TuneResult) -> str:
    limit, goal = result.aim.fit_bytes, result.goal
    if limit is None:
        return f"No change was proven to save memory: {why_empty(result)}."
    if goal is not None and goal.fits:
        return f"Fits in {byte_size(limit)} as it is; no change within it was proven faster: {why_empty(result)}."
    smallest = goal.smallest if goal is not None else None
    if smallest is None:
        return f"No plan was proven to fit in {byte_size(limit)}: no peak was measured."
    met = smallest.peak_bytes <= limit
    seen = f"{byte_size(smallest.peak_bytes)}, {with_names(smallest)}"
    if met:
        return f"No plan was proven to fit in {byte_size(limit)} in the time: the smallest peak was {seen}, not proven."
    return f"Nothing fits in {byte_size(limit)}: the smallest peak was {seen}."


def with_names(point: Point) -> str:
    """Return what is on in a configuration."""
    return f"with {listed(list(point.names))}" if point.names else "the program as it is"
