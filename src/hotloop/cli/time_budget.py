"""`--seconds` of `observe` and `diagnose`: the wall time of the whole command."""

from __future__ import annotations

import math

import click

from hotloop.launch.deadline import Deadline
from hotloop.observe.run.stopping import StopRule

DEFAULT_S = 90.0
HELP = f"Time budget for the whole command, start-up included (default {DEFAULT_S:g}s); measures as long as it allows."
STEPS_HELP = "Measure N steps after warm-up, within the time budget."


def time_budget(steps: int | None, seconds: float | None, *, full: bool) -> tuple[StopRule, Deadline]:
    """Return how much is measured, and by when all of it is done; the budget begins now."""
    if full and (steps is not None or seconds is not None):
        raise click.UsageError("--full lets the program run to its end: leave out --steps and --seconds")
    if full:
        return StopRule(full=True), Deadline(math.inf)
    rule = StopRule(steps=steps, lasting=seconds is not None and steps is None)
    return rule, Deadline(seconds or DEFAULT_S)
