"""`--seconds` of `observe` and `diagnose`: the wall time of the whole command."""

from __future__ import annotations

import math
import time

import click
import psutil

from hotloop.launch.deadline import Deadline
from hotloop.observe.run.stopping import StopRule

DEFAULT_S = 90.0
_MOST_S = 60.0
"""No start of hotloop takes longer."""
HELP = f"Time budget for the whole command, start-up included (default {DEFAULT_S:g}s); measures as long as it allows."
STEPS_HELP = "Measure N steps after warm-up, within the time budget."


def time_budget(steps: int | None, seconds: float | None, *, full: bool) -> tuple[StopRule, Deadline]:
    """Return how much is measured, and by when all of it is done."""
    if full and (steps is not None or seconds is not None):
        raise click.UsageError("--full lets the program run to its end: leave out --steps and --seconds")
    if full:
        return StopRule(full=True), Deadline(math.inf)
    rule = StopRule(steps=steps, lasting=seconds is not None and steps is None)
    return rule, Deadline(seconds or DEFAULT_S, spent_s=_spent_s())


def _spent_s() -> float:
    """Return for how long the command has run by now: on a busy machine its own imports take seconds."""
    context = click.get_current_context(silent=True)
    caller = context.find_root().obj if context is not None else None
    if caller is None or not caller.whole_process:
        return 0.0
    # The system's clock may have been set meanwhile: what is impossible counts as nothing.
    spent_s = time.time() - psutil.Process().create_time()
    return spent_s if 0.0 <= spent_s <= _MOST_S else 0.0
